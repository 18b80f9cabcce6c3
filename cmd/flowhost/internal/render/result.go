package render

import (
	"github.com/flowhost/flowhost/run"
)

// printResult prints what a run that has ended gave: its output if it succeeded, or
// with asJSON its whole record in any case.
func (t *Terminal) Result(record *run.Record, asJSON bool) error {
	switch {
	case asJSON:
		return t.JSON(record)
	case record.State == run.Succeeded:
		return t.JSON(record.Output)
	}
	return nil
}
