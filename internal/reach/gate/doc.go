// Package gate bounds what all calls of a host do with one connection together
// ([access.Limit]): how many operations are under way at once, and how many start in what
// time. The drivers of HTTP, SQL and mail share it.
//
// Flows take turns: the oldest operation of a flow is served after at most one of each other
// flow, however many of them a flow has started. The operations of one flow keep their order.
// Waiting ends with the context of the operation, and a flow that has [MaxWaiting] operations
// waiting at a gate gets a fault for the next one.
//
// Gates and tables of them are safe for concurrent use. The package starts no goroutines.
package gate
