package run

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Again says how a run is to be made again: what of it is taken over, and what
// with. The zero value continues it where it did not succeed, with its params and
// the flow as it is deployed now.
type Again struct {
	Whole bool // nothing is taken over

	// Task is run again, or an item of it, whatever has become of it; everything else
	// is taken over as it was. With Downstream, all that comes after it runs, too.
	// Within are the tasks, or items, that lead to it where it is one of a sub-flow,
	// the outermost first.
	Within     []TaskRef
	Task       TaskRef
	Downstream bool

	// Recorded asks for the flow as it was when the run was accepted, and not as it is
	// deployed now.
	Recorded bool

	// Params replace those of the run, by name. With FreshParams, the others are
	// made anew from the run's trigger, and not taken from the run.
	Params      map[string]json.RawMessage
	FreshParams bool
}

// Target is the task that is named at the level of the run itself: Task, or the
// first of those that lead to it. It is the zero TaskRef when none is named.
func (a Again) Target() TaskRef {
	if len(a.Within) > 0 {
		return a.Within[0]
	}
	return a.Task
}

// Inside is what is asked for of the run that the target's sub-flow was.
func (a Again) Inside() Again {
	a.Within = a.Within[1:]
	return a
}

// ParseTaskPath reads the name of a task or item as ParseTaskRef does, with the
// names of those before it whose sub-flows it is in: "etl/copy", "etl[eu]/copy[3]".
// A key goes as far as a bracket that ends the text or has a slash after it.
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

// ParseTaskRef reads the name of a task or, with the key in brackets, of an item:
// "copy", "copy[eu]".
func ParseTaskRef(text string) (TaskRef, error) {
	name, key, item := strings.Cut(text, "[")
	key, closed := strings.CutSuffix(key, "]")
	if name == "" || item && (!closed || key == "") {
		return TaskRef{}, fmt.Errorf("%q is not the name of a task: write NAME, or NAME[KEY] for an item", text)
	}
	return TaskRef{Task: name, Key: key}, nil
}
