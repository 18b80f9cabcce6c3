package crashtest

import (
	"fmt"
	"slices"
	"strings"
)

// LossError reports that a process ended because its journal is incomplete: the host
// refuses to continue with such a journal.
type LossError struct {
	Err error // contains the output of the process
}

func (e *LossError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LossError) Unwrap() error { return e.Err }

// losses are parts of the messages with which the host refuses to start.
var losses = []string{"the journal is damaged", "the journal is empty", "has lost its end", "the commits between are lost"}

// withOutput adds the output of the process to an error. It returns a *LossError when
// the output reports a loss.
func withOutput(err error, p *Process) error {
	output := p.Output()
	err = fmt.Errorf("%w; its output:\n%s", err, output)
	_, last, _ := strings.Cut("\n"+output, "\nError: ")
	if slices.ContainsFunc(losses, func(text string) bool { return strings.Contains(last, text) }) {
		return &LossError{Err: err}
	}
	return err
}
