package run

import (
	"encoding/json"
	"fmt"
	"strings"
)

// RerunOptions control how a finished run is run again: which results of it are reused,
// and with which params. The zero value reruns the tasks that did not succeed, with the
// run's params and the flow as it is deployed now.
type RerunOptions struct {
	Whole bool // reuse nothing

	// Task is a task or item that runs again whatever its result was; all other results
	// are reused. With Downstream, everything that depends on it runs again as well.
	// Within are the tasks or items whose sub-flows contain it, the outermost first.
	Within     []TaskRef
	Task       TaskRef
	Downstream bool

	// Recorded uses the flow as it was when the run was accepted, not as it is deployed
	// now.
	Recorded bool

	// Params replace those of the run, by name. With FreshParams, the others are
	// evaluated from the run's trigger again, not taken from the run.
	Params      map[string]json.RawMessage
	FreshParams bool
}

// Target is the named task at the level of the run itself: Task, or the first of Within.
// It is the zero TaskRef when no task is named.
func (o RerunOptions) Target() TaskRef {
	if len(o.Within) > 0 {
		return o.Within[0]
	}
	return o.Task
}

// Inside are the options for the run of the target's sub-flow.
func (o RerunOptions) Inside() RerunOptions {
	o.Within = o.Within[1:]
	return o
}

// ParseTaskPath parses the path of a task or item: its name as for ParseTaskRef, after
// the names of the tasks whose sub-flows contain it: "etl/copy", "etl[eu]/copy[3]". A key
// ends with a bracket at the end of the string or before a slash.
func ParseTaskPath(text string) ([]TaskRef, error) {
	var path []TaskRef
	for rest, more := text, true; more; {
		var part string
		if part, rest, more = cutTask(rest); more && rest == "" {
			return nil, fmt.Errorf("%q ends with a slash: a task follows it", text)
		}
		ref, err := ParseTaskRef(part)
		if err != nil {
			return nil, err
		}
		path = append(path, ref)
	}
	return path, nil
}

// cutTask splits a path after its first task or item.
func cutTask(path string) (first, rest string, more bool) {
	slash, bracket := strings.IndexByte(path, '/'), strings.IndexByte(path, '[')
	if bracket < 0 || slash >= 0 && slash < bracket {
		return strings.Cut(path, "/")
	}
	if end := strings.Index(path, "]/"); end >= 0 {
		return path[:end+1], path[end+2:], true
	}
	return path, "", false
}

// ParseTaskRef parses the name of a task or, with the key in brackets, of an item:
// "copy", "copy[eu]".
func ParseTaskRef(text string) (TaskRef, error) {
	name, key, item := strings.Cut(text, "[")
	key, closed := strings.CutSuffix(key, "]")
	if name == "" || item && (!closed || key == "") {
		return TaskRef{}, fmt.Errorf("%q is not the name of a task: write NAME, or NAME[KEY] for an item", text)
	}
	return TaskRef{Task: name, Key: key}, nil
}
