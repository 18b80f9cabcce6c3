package wasi

import "fmt"

// Exit is how a call ends whose guest called proc_exit, whatever the status. The
// guest's function has not returned, so nothing it had begun is complete; the
// instance can be called again.
type Exit struct {
	Status uint32
}

// Error contains the status.
func (e *Exit) Error() string { return fmt.Sprintf("the guest exited with status %d", e.Status) }

// procExit unwinds the guest. wazero recovers the panic and returns the error.
func (p *Process) procExit(_ memory, a []uint64) errno { panic(&Exit{uint32(a[0])}) }

// schedYield has nobody to yield to: a guest has one thread.
func (p *Process) schedYield(memory, []uint64) errno { return 0 }
