package rerun

import (
	"bytes"
	"encoding/json"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// CheckParams refuses params that would have no effect: a request that names an item
// keeps the items of its fan-out as they were, so a param that decides them cannot
// change. Of the params of sub-flows, only their evaluation shows whether they change
// with those of the run.
func CheckParams(f *flows.Flow, old *run.Record, how run.RerunOptions, params map[string]json.RawMessage) error {
	changes := func(name string) bool { return !bytes.Equal(old.Params[name], params[name]) }
	changed := false
	for name := range params {
		changed = changed || changes(name)
	}
	if !changed || len(how.Params) == 0 && !how.FreshParams {
		return nil
	}
	path := append(how.Within[:len(how.Within):len(how.Within)], how.Task)
	for level, ref := range path {
		spec := f.Task(ref.Task)
		if spec == nil {
			return nil // which the plan refuses
		}
		for _, name := range spec.ItemParams() {
			if ref.Key != "" && (level > 0 || changes(name)) {
				return run.Requestf(run.RequestParams, "the items of task %s depend on param %q of flow %s, and a run from one item keeps them as they are: name the task without the item, or leave the params as they are", spec.Name, name, f.Name)
			}
		}
		if f = spec.Child; f == nil {
			return nil
		}
	}
	return nil
}
