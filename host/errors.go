package host

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by the methods of a host that is closed, or that is
// being closed while they run.
var ErrClosed = errors.New("the host is closed")

// CodeBusy is the code of a call that was turned away because too many others
// wait. Nothing of it ran.
const CodeBusy = "busy"

// StorageError reports that a module cannot be stored, for which the module is not to
// blame.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return "storing a module: " + e.Err.Error() }

// Unwrap gives the error of the source.
func (e *StorageError) Unwrap() error { return e.Err }

// ModuleError reports why a module cannot be hosted.
type ModuleError struct {
	Path   string // of the file, or the digest of a module that is known by it
	Reason string // what is wrong
	Hint   string // what its author can do about it; may be empty

	passing bool  // it may be the host's load: the next one who asks tries again
	cause   error // for errors.Is; nil: none
}

// Unwrap gives the kind of the fault, [ErrCompileBudget], where it has one.
func (e *ModuleError) Unwrap() error { return e.cause }

// Error gives path, reason and hint in one line.
func (e *ModuleError) Error() string {
	text := e.Path + ": " + e.Reason
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// at is e for the file or digest by which the caller knows the module.
func (e *ModuleError) at(path string) *ModuleError {
	return &ModuleError{Path: path, Reason: e.Reason, Hint: e.Hint, passing: e.passing, cause: e.cause}
}

// locate names the module in err where err is about the module itself.
func locate(err error, path string) error {
	if fault, ok := errors.AsType[*ModuleError](err); ok {
		return fault.at(path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Ways in which a guest ends before its export returns: it is unwound from
// within a host function.
var (
	errInterrupted = errors.New("the call's context has ended")
	errOutputSize  = errors.New("the output is over its limit")
	errFuel        = errors.New("the call's fuel is used up")
	errDepth       = errors.New("the functions call each other too deeply")
	errStack       = errors.New("there is no memory for the stack of the functions that call each other")
)

// Why an image has no state yet. The next call tries again.
var (
	errSetupTime   = errors.New("the module's initialization did not end within the host's timeout")
	errSetupMemory = errors.New("initializing the module takes more memory than other calls leave")
	errAbandoned   = errors.New("no call waits for the module's initialization any more")
)

// inadequateError is a call whose limit is less than the memory with which the
// module begins its calls.
type inadequateError struct{ need, limit int64 }

func (e *inadequateError) Error() string {
	return fmt.Sprintf("the module starts with %d bytes of memory and the limit is %d: raise it", e.need, e.limit)
}

// exitError is a guest that ended itself.
type exitError struct {
	status uint32
	early  bool // while it was being initialized: what was called did not run
}

func (e *exitError) Error() string {
	text := fmt.Sprintf("exit status %d", e.status)
	if e.early {
		text += " while the module was being initialized"
	}
	return text
}

// trapError is a guest that broke.
type trapError struct {
	reason string // one line
	trace  string // the guest's stack, one frame a line; may be empty

	// hostTrace is set when something on the host's side of the border broke.
	hostTrace string
}

func (e *trapError) Error() string { return e.reason }
