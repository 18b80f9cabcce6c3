// Package fairq is a queue of items that wait for a worker and for limits that
// many of them share.
//
// Items of higher priority come first. Among items of one priority the flows take
// turns, and the items of one flow keep the order in which they were pushed. So a
// flow with very many items delays another one by no more than its turn, and
// items whose limits are used up hold back no others.
//
// A queue is not safe for concurrent use.
package fairq
