package engine

import "fmt"

// waitsAgree compares the waits that the loop keeps with those that are recorded.
func (o *openRun) waitsAgree() error {
	recorded := 0
	for _, t := range o.run.Tasks {
		if !t.Waits() {
			continue
		}
		recorded++
		if w := o.waits[t.TaskRef]; w == nil || w.state() != t {
			return fmt.Errorf("wait %s of run %s is recorded, and the loop has %+v", t.Task, o.run.ID, w)
		}
	}
	if recorded != len(o.waits) {
		return fmt.Errorf("%d waits of run %s are recorded, and the loop has %d", recorded, o.run.ID, len(o.waits))
	}
	return nil
}
