package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// formatVersion is that of the data folders that this program writes and reads. In
// version 1 all streams but the journal's were in one account.
const formatVersion = 2

const formatFile = "format"

// format says how a data folder is to be read.
type format struct {
	Version  int    `json:"version"`
	Flowhost string `json:"flowhost,omitempty"` // version of the program that made the folder
}

// FormatError refuses a data folder that this program would misread.
type FormatError struct {
	Dir     string
	Version int    // of the folder's format
	Known   int    // the one that this program reads
	By      string // version of the program that made the folder, empty when unknown
}

func (e *FormatError) Error() string {
	by := "a newer flowhost"
	if e.By != "" {
		by = "flowhost " + e.By
	}
	if e.Version < e.Known {
		by = "an older flowhost"
		if e.By != "" {
			by = "flowhost " + e.By
		}
		return fmt.Sprintf("the data folder %s has format %d of %s, and this program reads format %d only: move the folder away to start with an empty one, or run the older program with it until its runs have finished and then move it away", e.Dir, e.Version, by, e.Known)
	}
	return fmt.Sprintf("the data folder %s has format %d, this program reads format %d: use %s, or give this one a folder of its own", e.Dir, e.Version, e.Known, by)
}

// checkFormat reads the format of a data folder, and notes that of a new one.
// Folders with streams from before there was the file have version 1.
func checkFormat(dir, flowhost string) error {
	name := filepath.Join(dir, formatFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "jetstream")); err == nil {
			return &FormatError{Dir: dir, Version: 1, Known: formatVersion}
		}
		return writeFormat(name, flowhost)
	}
	if err != nil {
		return fmt.Errorf("format of the data folder: %w", err)
	}
	var f format
	if err := json.Unmarshal(text, &f); err != nil || f.Version < 1 {
		return fmt.Errorf("format of the data folder: %s is damaged: put a backup of it in place; its usual content is {\"version\":%d}", name, formatVersion)
	}
	if f.Version != formatVersion {
		return &FormatError{Dir: dir, Version: f.Version, Known: formatVersion, By: f.Flowhost}
	}
	return nil
}

func writeFormat(name, flowhost string) error {
	text, err := json.Marshal(format{Version: formatVersion, Flowhost: flowhost})
	if err == nil {
		err = replaceFile(name, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("format of the data folder: %w", err)
	}
	return nil
}
