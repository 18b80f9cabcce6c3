package torture

import (
	"fmt"
	"slices"
	"strings"
)

// LossError says that a process has ended because its journal is not what it was:
// the host goes on with no journal of which something is missing.
type LossError struct {
	Err error // tells what the process said
}

func (e *LossError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *LossError) Unwrap() error { return e.Err }

// losses are of the messages with which the host refuses to start.
var losses = []string{"the journal is damaged", "the journal is empty", "its end is lost", "the commits between are lost"}

// withOutput adds to an error what the process said. It gives a *LossError when that
// is why the process has ended.
func withOutput(err error, p *Process) error {
	said := p.Output()
	err = fmt.Errorf("%w; it said:\n%s", err, said)
	_, last, _ := strings.Cut("\n"+said, "\nError: ")
	if slices.ContainsFunc(losses, func(text string) bool { return strings.Contains(last, text) }) {
		return &LossError{Err: err}
	}
	return err
}
