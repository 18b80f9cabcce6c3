package api

import (
	"slices"

	"github.com/flowhost/flowhost/run"
)

// LogsRequest asks for lines of a run's log.
type LogsRequest struct {
	run.LogQuery
	After  string `json:"after"`  // cursor: only lines behind it
	Follow bool   `json:"follow"` // wait for a line when there is none
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *LogsRequest) Check() error {
	if err := CheckLevel(b.Level); err != nil {
		return err
	}
	if b.Key != "" && b.Task == "" {
		return run.Requestf(run.RequestParams, "key is that of an item, and no task is given")
	}
	if b.Attempt < 0 {
		return run.Requestf(run.RequestParams, "attempt: %d is less than 0", b.Attempt)
	}
	return (&RunRequest{b.Run}).Check()
}

// LogPage is a part of the log of a run.
type LogPage struct {
	Lines []run.LogEntry `json:"lines"`
	Next  string         `json:"next,omitempty"` // cursor of what follows
	End   bool           `json:"end,omitempty"`  // nothing follows: the run has finished
}

// CheckLevel refuses a string that is no level; "" selects all levels.
func CheckLevel(level string) error {
	if level != "" && Severity(level) < 0 {
		return run.Requestf(run.RequestParams, "level: %q is none of debug, info, warn, error", level)
	}
	return nil
}

// Severity orders levels; -1 is an unknown one.
func Severity(level string) int {
	return slices.Index([]string{"debug", "info", "warn", "error"}, level)
}
