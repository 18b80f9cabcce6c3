package main

import (
	"github.com/flowhost/flowhost/run"
)

// printResult prints what a run that has ended gave: its output if it succeeded, or
// with asJSON its whole record in any case.
func (t *terminal) result(record *run.Record, asJSON bool) error {
	switch {
	case asJSON:
		return t.json(record)
	case record.State == run.Succeeded:
		return t.json(record.Output)
	}
	return nil
}
