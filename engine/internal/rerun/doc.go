// Package rerun plans what a run carries over from an earlier one: the results that
// still count, and what the runs of its sub-flows carry over in the same way. A plan
// is a function of the earlier run's record, the flow and the request, and of
// nothing else.
package rerun
