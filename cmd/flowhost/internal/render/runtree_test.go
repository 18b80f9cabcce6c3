package render

import (
	"testing"

	"github.com/flowhost/flowhost/run"
)

func TestRunTree(t *testing.T) {
	t.Parallel()
	var tree runTree
	if tree.has("A") || tree.path("A") != "" {
		t.Error("nothing is known yet")
	}
	started := func(id run.ID, task, key string, child run.ID) {
		tree.note(run.Event{Run: id, Data: &run.ChildStarted{TaskRef: run.TaskRef{Task: task, Key: key}, Child: child}})
	}
	failed := func(id run.ID, task, key string) {
		tree.note(run.Event{Run: id, Data: &run.Finished{State: run.Failed, Failure: &run.Failure{Task: task, Key: key}}})
	}
	started("A", "call", "", "B")
	started("B", "again", "eu", "C")
	if !tree.has("C") || tree.path("C") != "call/again[eu]/" || tree.path("A") != "" || tree.has("A") {
		t.Errorf("%+v", tree)
	}
	if got := tree.culprit(callKey{"A", run.TaskRef{Task: "call"}}); got != (callKey{"A", run.TaskRef{Task: "call"}}) {
		t.Errorf("nothing has failed, and %v did", got)
	}
	failed("C", "work", "2")
	failed("B", "again", "eu")
	if got := tree.culprit(callKey{"A", run.TaskRef{Task: "call"}}); got != (callKey{"C", run.TaskRef{Task: "work", Key: "2"}}) {
		t.Errorf("%v failed", got)
	}
	started("A", "call", "", "D") // another attempt, which goes well
	if got := tree.culprit(callKey{"A", run.TaskRef{Task: "call"}}); got != (callKey{"A", run.TaskRef{Task: "call"}}) {
		t.Errorf("%v failed", got)
	}
}
