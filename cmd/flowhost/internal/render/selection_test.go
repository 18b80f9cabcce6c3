package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// fanned are the records of a fan-out, of which every third item fails.
func fanned(name string, items int) []run.TaskRecord {
	counts := &run.ItemCounts{Total: items}
	tasks := []run.TaskRecord{{Task: name, State: run.Succeeded, Counts: counts}}
	for i := range items {
		key, state := fmt.Sprint(i), run.Succeeded
		if i%3 == 2 {
			state = run.Failed
		}
		*counts.Of(state)++
		tasks = append(tasks, run.TaskRecord{Task: name, Key: &key, State: state, Attempts: 1})
	}
	return tasks
}

func TestSelectedTasks(t *testing.T) {
	t.Parallel()
	record := &run.Record{Run: "R", Tasks: append(fanned("few", 4), fanned("many", 40)...)}
	record.Tasks = append(record.Tasks, run.TaskRecord{Task: "none", State: run.Skipped, Reason: "when is false"}, run.TaskRecord{Task: "bad", State: run.Failed})
	for name, c := range map[string]struct {
		selection Selection
		want      string
	}{
		"all": {Selection{}, `few few[0] few[1] few[2] few[3] many many[2] many[5] many[8] many[11] many[14] many[17] many[20] many[23] many[26] many[29] ` +
			`… 30 more items, 3 of them failed: 'flowhost show R --task many' lists all, with --failed those that failed none bad`},
		"a task":                    {Selection{Task: run.TaskRef{Task: "few"}}, "few few[0] few[1] few[2] few[3]"},
		"an item":                   {Selection{Task: run.TaskRef{Task: "many", Key: "7"}}, "many[7]"},
		"an item that did not fail": {Selection{Task: run.TaskRef{Task: "many", Key: "7"}, Failed: true}, ""},
		"failed items of a task": {Selection{Task: run.TaskRef{Task: "many"}, Failed: true},
			"many[2] many[5] many[8] many[11] many[14] many[17] many[20] many[23] many[26] many[29] many[32] many[35] many[38]"},
		"failed tasks and items": {Selection{Failed: true},
			"few[2] many[2] many[5] many[8] many[11] many[14] many[17] many[20] many[23] many[26] many[29] many[32] many[35] many[38] bad"},
	} {
		var out bytes.Buffer
		found := NewTerminal(&out, nil).DescribeTasks(t.Context(), nil, record, c.selection)
		var got []string
		for line := range strings.Lines(out.String()) {
			if task, ok := strings.CutPrefix(line, "task "); ok {
				got = append(got, strings.Fields(task)[0])
			} else if strings.HasPrefix(line, "…") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" || found != (c.want != "") {
			t.Errorf("%s: found %t (-want +got):\n%s", name, found, diff)
		}
	}
	if n := len(bounded(failedOf(record))); n != 1+maxItems+1 {
		t.Errorf("%d failures are explained", n)
	}
}

func failedOf(record *run.Record) []*run.TaskRecord {
	var failed []*run.TaskRecord
	for i := range record.Tasks {
		if hasFailed(&record.Tasks[i]) {
			failed = append(failed, &record.Tasks[i])
		}
	}
	return failed
}

func TestCountsText(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		counts run.ItemCounts
		over   bool
	}{
		"0 items":             {run.ItemCounts{}, true},
		"1 item: 1 succeeded": {run.ItemCounts{Total: 1, Succeeded: 1}, true},
		"3 items: 1 failed, 1 canceled, 1 not started":                            {run.ItemCounts{Total: 3, Failed: 1, Canceled: 1, Waiting: 1}, true},
		"0 of 3 items done; 3 waiting":                                            {run.ItemCounts{Total: 3, Waiting: 3}, false},
		"3 of 9 items done: 2 succeeded, 1 failed; 1 running, 1 ready, 4 waiting": {run.ItemCounts{Total: 9, Succeeded: 2, Failed: 1, Running: 1, Ready: 1, Waiting: 4}, false},
	} {
		if got := countsText(&c.counts, c.over); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
