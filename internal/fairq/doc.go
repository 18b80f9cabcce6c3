// Package fairq decides what computes next: it is the one admission of the engine, the
// host and the simulations.
//
// A [Queue] holds items that wait for a place and for limits that many of them share.
// Items of higher priority come first. Among items of one priority the flows take turns,
// and the items of one flow keep the order in which they were pushed. So a flow with very
// many items delays another one by no more than its turn, and items whose limits are used
// up hold back no others.
//
// [Places] bound what is under way. Whoever is alone gets all of them, and a flow that has
// nothing under way is admitted at once above the bound. [Admit] joins the two.
//
// A Queue is not safe for concurrent use; Places are, because a call that waits gives its
// place back and returns to it on its own goroutine. The package starts no goroutines.
package fairq
