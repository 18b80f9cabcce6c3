package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

func TestArtifactsOfARecord(t *testing.T) {
	t.Parallel()
	digest := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	object := func(digit, name string) string {
		return fmt.Sprintf(`{"$artifact":%q,"size":5,"name":%q,"content_type":"text/csv"}`, digest(digit), name)
	}
	of := func(task string, key *string, digit, name string) run.TaskArtifact {
		return run.TaskArtifact{Task: task, Key: key, Name: name, Size: 5, ContentType: "text/csv", Digest: digest(digit)}
	}
	eu := "eu"
	record := &run.Record{
		Output: json.RawMessage(object("9", "of the run")),
		Tasks: []run.TaskRecord{
			{Task: "plain", Output: json.RawMessage(`{"sum":7}`)},
			{Task: "make", Input: json.RawMessage(object("8", "input")), Output: json.RawMessage(
				`{"z":` + object("1", "last") + `,"a":[1,` + object("2", "first") + `,[` + object("2", "first") + `]]}`)},
			{Task: "each", Output: json.RawMessage(`{"eu":` + object("3", "part") + `,"us":` + object("4", "lost") + `}`)},
			{Task: "each", Key: &eu, Output: json.RawMessage(object("3", "part"))},
			{Task: "none", Output: json.RawMessage(`[{"$artifact":"sha256:77"},{"$artifact":7},{"$artifact":null,"in":` + object("5", "inner") + `}]`)},
			{Task: "bare", Output: json.RawMessage(`{"$artifact":"` + digest("6") + `","size":-1,"name":7}`)},
			{Task: "broken", Output: json.RawMessage(`{"$artifact"`)},
		},
	}
	want := []run.TaskArtifact{
		of("make", nil, "2", "first"), of("make", nil, "1", "last"),
		of("each", nil, "4", "lost"), of("each", &eu, "3", "part"),
		of("none", nil, "5", "inner"), {Task: "bare", Digest: digest("6")},
	}
	if diff := cmp.Diff(want, record.Artifacts()); diff != "" {
		t.Error(diff)
	}
	for digit, want := range map[string]bool{"1": true, "3": true, "8": false, "9": false, "0": false} {
		if record.HasArtifact(digest(digit)) != want {
			t.Errorf("the record has artifact %s: %t", digit, !want)
		}
	}
}
