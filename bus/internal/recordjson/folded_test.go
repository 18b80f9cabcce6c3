package recordjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// A record that is too large loses the items of fan-outs first, then inputs and
// outputs, then all tasks.
func TestARecordLosesItsItemsFirst(t *testing.T) {
	t.Parallel()
	big := json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)
	record := &run.Record{Run: "r", Flow: "f", State: run.Succeeded, Tasks: []run.TaskRecord{{Task: "t", Output: big}}}
	for _, key := range []string{"0", "1", "2"} {
		record.Tasks = append(record.Tasks, run.TaskRecord{Task: "t", Key: &key, Output: big})
	}
	for limit, want := range map[int]struct {
		tasks  int
		output bool
	}{
		1 << 20: {4, true},
		20_000:  {1, true},
		2_000:   {1, false},
	} {
		body, err := Encode(record, limit)
		var got run.Record
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil || len(body) > limit || len(got.Tasks) != want.tasks || (len(got.Tasks[0].Output) > 10) != want.output || got.Truncated != (want.tasks < 4 || !want.output) {
			t.Errorf("in %d bytes: %d bytes, %d tasks, truncated %t, %v", limit, len(body), len(got.Tasks), got.Truncated, err)
		}
	}
	if len(record.Tasks) != 4 || record.Truncated {
		t.Error("the record itself was changed")
	}
}
