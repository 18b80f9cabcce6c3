// Package hostile is tests only: attacks on the built program as a whole, by those
// who send messages, write flow files, build modules or hold the credentials for
// clients, and what each does to everybody else while it runs.
//
// An attack states the promise that it attacks. A separate host serves the
// attacker's flow beside an honest one; probes ask for runs of the honest flow, ask
// the API, connect, publish triggers, and look at the process and at its collector,
// first in a quiet moment, then beside the attack. The longest stop may be 250 ms
// longer than in the quiet moment, in the processor's time of the host. Afterwards the run that had finished before must
// still be known, and each trigger that was acknowledged must have made one run.
//
// A busy machine stops a process now and then: an attack whose stops are too long
// is tried again on a new host, and only what comes each time is reported. What got
// lost, and an attack that ends the process, is reported at once.
//
// The attacks of guests on the ways outside are in TestDoor: operations that are not
// granted, or not well-formed. Each must be refused with its code and logged, and nothing
// may leave the host, which a proxy and a listener count.
//
// go test runs a sample; go test -args -all runs every attack in every size and
// prints a table, see the make target test-hostile; -only runs those with a text in
// their name.
package hostile
