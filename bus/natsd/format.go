package natsd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// formatVersion is that of the data directories that this program writes and reads. In
// version 1 all streams but the journal's were in one account.
const formatVersion = 2

const formatFile = "format"

// maxFormat bounds the file, which has one short line.
const maxFormat = 4 << 10

// format is the version of a data directory's content, and marks it as a host's. Both
// fields are always there.
type format struct {
	Version  int    `json:"version"`
	Flowhost string `json:"flowhost"` // version of the program that made the directory
}

// FormatError refuses a data directory that this program would misread.
type FormatError struct {
	Dir     string
	Version int    // of the directory's format
	Known   int    // the one that this program reads
	By      string // version of the program that made the directory
}

func (e *FormatError) Error() string {
	if e.Version < e.Known {
		return fmt.Sprintf("the data directory %s has format %d, this program reads format %d only: move the directory away to start with an empty one, or run flowhost %s, which made it, until its runs have finished and then move it away", e.Dir, e.Version, e.Known, e.By)
	}
	return fmt.Sprintf("the data directory %s has format %d, this program reads format %d: use flowhost %s, or give this host another directory", e.Dir, e.Version, e.Known, e.By)
}

// checkFormat reads the mark of a data directory: its format. It fails with
// fs.ErrNotExist where there is none.
func checkFormat(dir string) error {
	name := filepath.Join(dir, formatFile)
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	var f format
	if info.Mode().IsRegular() && info.Size() <= maxFormat {
		text, err := os.ReadFile(name)
		if err != nil {
			return dataDirError(err)
		}
		if json.Unmarshal(text, &f) != nil {
			f = format{}
		}
	}
	switch {
	case f.Version < 1 || f.Flowhost == "":
		return fmt.Errorf("data directory: %s is damaged or not flowhost's: name another directory or, if this one is a host's, put a backup of the file in place; its usual content is {\"version\":%d,\"flowhost\":\"VERSION\"}", name, formatVersion)
	case f.Version != formatVersion:
		return &FormatError{Dir: dir, Version: f.Version, Known: formatVersion, By: f.Flowhost}
	}
	return nil
}

func writeFormat(name, flowhost string) error {
	text, err := json.Marshal(format{Version: formatVersion, Flowhost: cmp.Or(flowhost, "unknown")})
	if err == nil {
		err = replaceFile(name, append(text, '\n'), 0o600)
	}
	if err != nil {
		return dataDirError(err)
	}
	return nil
}
