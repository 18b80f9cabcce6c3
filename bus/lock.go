package bus

import "fmt"

const lockFile = "flowhost.lock"

// LockedError says that another process has the data folder open.
type LockedError struct {
	Dir string
	PID int // of that process, 0 when it is not known
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s uses the data folder %s: stop it, or give this one a folder of its own", who, e.Dir)
}
