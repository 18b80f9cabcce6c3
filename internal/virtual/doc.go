// Package virtual runs flows on the engine in virtual time: hours of waiting,
// retrying and firing pass in milliseconds. A [Script] decides what each call does
// and how long it takes.
//
// A [Runner] has an engine, a journal that discards its commits, and a clock that
// does not move while there is work at its instant. [Runner.Until] moves it from
// one instant at which something happens to the next. Calls that end by themselves
// at an instant end before any timer of that instant fires, in the order in which
// they began. Calls that a timer interrupts end after all timers of that instant.
//
// The same Config and the same calls of the Runner's methods give the same runs,
// including their ids: attempts begin in a deterministic order, and the Runner
// asks [Config.Script] in that order. Only [ScriptedCall.Call] may introduce
// nondeterminism.
//
// [New] starts a goroutine for the engine, which ends with [Runner.Close] or with
// the context. Each [ScriptedCall.Call] has a goroutine while [Runner.Until] waits
// for it.
package virtual
