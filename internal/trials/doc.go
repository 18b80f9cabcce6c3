// Package trials makes many runs of one flow in the virtual time of package
// rehearsal, with calls whose lengths and ends are drawn by chance, and tells how
// long the runs take and which tasks decide it.
//
// Each run has an engine of its own and begins at the same instant. What a call
// draws depends on the seed, the number of the run, the task, the item and the
// attempt, and on nothing else: two simulations of which one has more workers, or
// another length for one task, differ in that only. The same [Config] gives the
// same [Report].
package trials
