package run

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A call without grants is the bytes that it was before there were any.
func TestGrantsInCalls(t *testing.T) {
	t.Parallel()
	plain, err := json.Marshal(Call{})
	if err != nil || strings.Contains(string(plain), "grants") {
		t.Errorf("%s %v", plain, err)
	}
	want := Call{Input: json.RawMessage("null"), Grants: Grants{Files: []FileGrant{
		{Folder: "/flows", Path: "data", Guest: "/data"}, {Folder: "/flows", Path: "out", Guest: "/out", Write: true},
	}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Call
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(text), `"grants":{"files":[{"folder":"/flows","path":"data","guest":"/data"},{`) {
		t.Errorf("got %s", text)
	}
}
