// Package rehearsal runs flows on the engine in virtual time: hours of waiting,
// retrying and firing pass in milliseconds, and whoever rehearses says what each
// call does and how long it takes.
//
// A [Director] has an engine, a journal that forgets, and a clock that stands
// still while there is anything to do at its instant. [Director.Until] moves it,
// from one instant at which something happens to the next. What ends by itself at
// an instant has ended before any timer goes off at that instant, in the order in
// which it began. What a timer tells to end, ends when all timers of that instant
// have gone off.
//
// The same Config and the same calls of the Director's methods give the same
// runs, to the ids: attempts begin in an order that depends on nothing else, and
// [Config.Play] is asked in that order. Only calls of [Turn.Call] may bring in
// what is not the same each time.
//
// [New] starts a goroutine for the engine, which ends with [Director.Close] or with
// the context. Calls of [Turn.Call] have goroutines while [Director.Until] waits
// for them.
package rehearsal
