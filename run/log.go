package run

import "time"

// LogEntry is one line of a guest's log with what wrote it. Its JSON form is
// stable.
type LogEntry struct {
	Run     ID        `json:"run"`
	Flow    string    `json:"flow"`
	Task    string    `json:"task"`
	Key     string    `json:"key,omitempty"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"time"` // when the host took the line
	LogLine
}

// LogQuery asks for lines of the logs of one run, oldest first.
type LogQuery struct {
	Run     ID     `json:"run"`
	Task    string `json:"task,omitempty"`    // empty for all
	Key     string `json:"key,omitempty"`     // of an item of the task; empty for all
	Attempt int    `json:"attempt,omitempty"` // 0 for all
	Level   string `json:"level,omitempty"`   // the least severe to show: debug (default), info, warn, error
}
