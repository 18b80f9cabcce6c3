package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Item is one item of a fan-out.
type Item struct {
	Key   string // a field's name, or the place in the list, "0" for the first
	Index int    // its place among all items
	Value json.RawMessage
	Named bool // the key is that of an object
}

// Items are the items of a [TaskExpanded], in their order.
func Items(all json.RawMessage) ([]Item, error) {
	if len(all) > 0 && all[0] == '{' {
		return fields(all)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(all, &list); err != nil {
		return nil, fmt.Errorf("the items of a fan-out are neither a list nor an object: %w", err)
	}
	items := make([]Item, len(list))
	for i, value := range list {
		items[i] = Item{Key: strconv.Itoa(i), Index: i, Value: value}
	}
	return items, nil
}

func fields(all json.RawMessage) ([]Item, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(all, &object); err != nil {
		return nil, fmt.Errorf("the items of a fan-out are no object: %w", err)
	}
	items := make([]Item, 0, len(object))
	for i, key := range slices.Sorted(maps.Keys(object)) {
		items = append(items, Item{Key: key, Index: i, Value: object[key], Named: true})
	}
	return items, nil
}

// Gather puts the outputs of a fan-out's items together: a list, or an object by
// key, with null for items that did not succeed. It is nil unless the fan-out has
// succeeded.
func (r *Run) Gather(t *TaskRun) json.RawMessage {
	if t.Items == nil || t.State != Succeeded {
		return nil
	}
	items, err := Items(t.Items)
	if err != nil {
		return nil // it was expanded from what cannot be read: a damaged value, reported when it was
	}
	object := len(t.Items) > 0 && t.Items[0] == '{'
	out := []byte{'['}
	if object {
		out[0] = '{'
	}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		if object {
			name, _ := EncodeJSON(item.Key)
			out = append(append(out, name...), ':')
		}
		output := json.RawMessage("null")
		if of := r.find(TaskRef{Task: t.Task, Key: item.Key}); of != nil && of.State == Succeeded && len(of.Output) > 0 {
			output = of.Output
		}
		out = append(out, output...)
	}
	if object {
		return append(out, '}')
	}
	return append(out, ']')
}

// ItemCounts are the items of a fan-out by state.
type ItemCounts struct {
	Total     int `json:"total"`
	Waiting   int `json:"waiting,omitempty"` // also those to which nothing has happened yet
	Ready     int `json:"ready,omitempty"`
	Running   int `json:"running,omitempty"`
	Succeeded int `json:"succeeded,omitempty"`
	Failed    int `json:"failed,omitempty"`
	Skipped   int `json:"skipped,omitempty"`
	Canceled  int `json:"canceled,omitempty"`
}

// Of is the number of items in a state, which may be changed.
func (c *ItemCounts) Of(state State) *int {
	switch state {
	case Ready:
		return &c.Ready
	case Running:
		return &c.Running
	case Succeeded:
		return &c.Succeeded
	case Failed:
		return &c.Failed
	case Skipped:
		return &c.Skipped
	case Canceled:
		return &c.Canceled
	}
	return &c.Waiting
}

// Done is the number of items that have ended.
func (c *ItemCounts) Done() int { return c.Succeeded + c.Failed + c.Skipped + c.Canceled }

// countItems counts the items of the run's fan-outs, by task; nil without fan-outs.
func (r *Run) countItems() map[string]*ItemCounts {
	var all map[string]*ItemCounts
	for _, t := range r.Tasks {
		switch {
		case t.Items != nil:
			if all == nil {
				all = map[string]*ItemCounts{}
			}
			n := CountItems(t.Items)
			all[t.Task] = &ItemCounts{Total: n, Waiting: n}
		case t.Key != "" && all[t.Task] != nil:
			all[t.Task].Waiting--
			*all[t.Task].Of(t.State)++
		}
	}
	return all
}

// CountItems is the number of the items of a fan-out. It counts the commas between
// them, which takes a tenth of the time of decoding: large runs are shown often.
func CountItems(all json.RawMessage) int {
	depth, commas, quoted, empty := 0, 0, false, true
	for i := 0; i < len(all); i++ {
		switch c := all[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted, empty = !quoted, false
		case quoted || c == ' ' || c == '\n' || c == '\t' || c == '\r':
		case c == '[' || c == '{':
			empty = empty && depth == 0
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			commas++
		default:
			empty = false
		}
	}
	if empty {
		return 0
	}
	return commas + 1
}
