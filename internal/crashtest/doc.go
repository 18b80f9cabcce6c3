// Package crashtest tests the host's promises from outside: nothing that was
// acknowledged gets lost, whatever happens to the process, to its disk and to the
// NATS servers that it uses.
//
// A [Program] is the built binary, a [Process] one process of it. A [Load] requests
// runs in every possible way and notes in a [Ledger] the requests and what the host
// acknowledged. Afterwards the test reads an [Archive] of the streams that the host
// publishes, and [Check] compares the two.
//
// A [Marks] is a host whose tasks reach outside while it is killed: a stream, a bucket and a
// database show what got lost or was done twice.
//
// The package knows the host as other systems do, by its command line, its subjects
// and its JSON: it imports nothing of the host, and contains all of these as
// literals.
//
// Tests that take long or need root have Makefile targets: test-kill, test-marks,
// test-powerloss, test-faults and soak. The subpackage defects, with the target
// test-defects, uses package bus to write to clusters of this package.
//
// Goroutines: a Process has one that waits for its end, a Load as many as it has
// workers while Run runs.
package crashtest
