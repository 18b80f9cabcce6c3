package natsd

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const lockFile = "flowhost.lock"

// LockedError reports that another process has the data directory open.
type LockedError struct {
	Dir   string
	PID   int       // of that process, as its host or container counts; 0 when it is not known
	Host  string    // name of its host or container, empty when it is not known
	Since time.Time // when it opened the directory, zero when it is not known
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.Host != "" {
		who += " on " + e.Host
	}
	if !e.Since.IsZero() {
		who += " (since " + e.Since.Format(time.DateTime) + ")"
	}
	return fmt.Sprintf("%s uses the data directory %s: stop it, or give this host another directory", who, e.Dir)
}

// holder is what the lock file contains about the process that has it.
type holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// readHolder gives the zero holder when the file has none: its process may be
// about to write it.
func readHolder(file *os.File) holder {
	text := make([]byte, 1<<10)
	n, _ := file.ReadAt(text, 0)
	var h holder
	if json.Unmarshal(text[:n], &h) != nil {
		return holder{}
	}
	return h
}

func writeHolder(file *os.File) error {
	host, _ := os.Hostname() // a message is better without it than a start refused for it
	text, err := json.Marshal(holder{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("lock of the data directory: %w", err)
	}
	return nil
}
