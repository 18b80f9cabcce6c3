package run

import "time"

// ScheduleStatus is the state of a deployed schedule. Its JSON form is stable.
type ScheduleStatus struct {
	Schedule
	Expression string    `json:"expression"` // as written in the flow; that of an interval is "every 15m"
	Zone       string    `json:"timezone"`   // IANA name
	Enabled    bool      `json:"enabled"`
	Next       time.Time `json:"next,omitzero"` // the next nominal time; the zero time when there is none
	Due        time.Time `json:"due,omitzero"`  // when that fires
	Open       []ID      `json:"open"`          // its runs that are not finished, oldest first
}
