// Package flowsim simulates many runs of one flow in the virtual time of package
// virtual, with calls whose durations and outcomes are drawn at random, and reports
// how long the runs take and which tasks decide it.
//
// Each run has its own engine and begins at the same instant. The random numbers of
// a call depend on the seed, the number of the run, the task, the item and the
// attempt only: two simulations that differ in the number of workers, or in the
// duration of one task, differ in nothing else. The same [Config] gives the same
// [Report].
package flowsim
