// Package hostile is tests only: a corpus of modules that attack the host, each
// with the one right ending of the call that runs it.
//
// Meanwhile an honest module is called, the collector runs and timers fire: the
// longest stop of each is compared with a quiet moment of the same process right
// before and after, and so is the time from a call's deadline until its place is
// free. Busy machines stop a process now and then, so a case that is late is run
// again, three times in all.
//
// A case runs against a real host in a separate process, which may hold so many
// bytes and take so much time; the right answer has to come within these bounds,
// and a good call of a module that is new to the host must succeed afterwards.
// Memory is what the kernel counts as the process's peak resident set
// (VmHWM): RLIMIT_AS cannot be used, as address space is reserved generously. The
// parent watches the resident set meanwhile and kills a process that goes far
// beyond, so that a failing test does not take the machine with it. Where there
// is no /proc, only the bounds of time hold.
//
// go test runs the quick cases, several in one process; go test -args -all runs
// all of them, each in its own, see the make target test-hostile; -only runs those
// whose names match an expression.
package hostile
