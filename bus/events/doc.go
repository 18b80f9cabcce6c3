// Package events publishes what happens to runs for others to see. Nothing waits for an
// event, and nothing is recovered from one; whoever needs every event reads package
// feed.
//
// To read it: events.go collects events and sends the live ones, eventstream.go stores
// the copy in FH_EVENTS, event.go encodes an event. [Publisher.Run] blocks and ends
// with its context and the two goroutines that it starts.
package events
