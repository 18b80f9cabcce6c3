// Command files is a guest that does with files what it is told on stdin: a JSON
// list of operations. It answers on stdout with the list of what came of them.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {}

type operation struct{ Do, Path, With string }

var left []*os.File // over calls, as no good guest does

//go:wasmexport call
func call() int32 {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	var operations []operation
	if err := json.Unmarshal(input, &operations); err != nil {
		return 2
	}
	results := []string{}
	for _, o := range operations {
		text, err := o.perform()
		if err != nil {
			text = "error: " + err.Error()
		}
		results = append(results, text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		return 3
	}
	return 0
}

func (o operation) perform() (string, error) {
	switch o.Do {
	case "read":
		text, err := os.ReadFile(o.Path)
		return string(text), err
	case "write":
		return "", os.WriteFile(o.Path, []byte(o.With), 0o644)
	case "append":
		f, err := os.OpenFile(o.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = f.WriteString(o.With)
		return "", err
	case "fill":
		return "", fill(o.Path)
	case "list":
		entries, err := os.ReadDir(o.Path)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name()+fmt.Sprint(e.IsDir()))
		}
		return strings.Join(names, " "), err
	case "walk":
		var names []string
		err := filepath.WalkDir(o.Path, func(p string, _ os.DirEntry, err error) error {
			names = append(names, p)
			return err
		})
		return strings.Join(names, " "), err
	case "stat":
		info, err := os.Stat(o.Path)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(info.Size(), info.IsDir(), info.ModTime().UTC().Format(time.RFC3339)), nil
	case "rename":
		return "", os.Rename(o.Path, o.With)
	case "symlink":
		return "", os.Symlink(o.With, o.Path)
	case "link":
		return "", os.Link(o.With, o.Path)
	case "mkdir":
		return "", os.MkdirAll(o.Path, 0o755)
	case "remove":
		return "", os.RemoveAll(o.Path)
	case "times":
		at := time.Unix(1700000000, 0)
		return "", os.Chtimes(o.Path, at, at)
	case "truncate":
		return "", os.Truncate(o.Path, 2)
	case "leave":
		f, err := os.Open(o.Path)
		left = append(left, f)
		return "", err
	case "read left":
		text, err := io.ReadAll(left[0])
		return string(text), err
	}
	return "", fmt.Errorf("unknown operation %q", o.Do)
}

// fill writes until there is no more room.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
}
