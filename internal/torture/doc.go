// Package torture proves from outside what the host promises: that nothing that
// was acknowledged gets lost, whatever happens to the process, to its disk and to
// the NATS servers that it uses.
//
// A [Program] is the built binary, a [Process] one process of it. A [Load] asks
// for runs in every way there is and enters in a [Ledger] what was asked and what
// was acknowledged. Afterwards an [Archive] is read of the streams that the host
// publishes, and [Check] lays both beside each other.
//
// The package knows the host as other systems do, by its command line, its
// subjects and its JSON: it imports nothing of it, and states all of that as
// literals.
//
// What takes long or needs more than a user's rights has a target of its own in
// the Makefile: test-kill, test-powerloss, test-faults and soak. The package below,
// with the target test-defects, writes by package bus itself, to clusters of here.
//
// Goroutines: a Process has one that waits for its end, a Load as many as it has
// workers while Run runs, a [Moment] none.
package torture
