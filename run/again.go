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
