package run

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run/access"
)

// A call without grants is the bytes that it was before there were any.
func TestGrantsInCalls(t *testing.T) {
	t.Parallel()
	plain, err := json.Marshal(Call{})
	if err != nil || strings.Contains(string(plain), "grants") {
		t.Errorf("%s %v", plain, err)
	}
	want := Call{Input: json.RawMessage("null"), Grants: Grants{
		Files:  []FileGrant{{Folder: "/flows", Path: "data", Guest: "/data"}, {Folder: "/flows", Path: "out", Guest: "/out", Write: true}},
		Grants: access.Grants{Connections: []string{"github"}, HTTP: &access.HTTPGrant{Allow: []string{"GET https://example.com/"}}},
	}}
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
	if !strings.Contains(string(text), `}],"connections":["github"],"http":{"allow":["GET https://example.com/"]}}`) {
		t.Errorf("the kinds of grants are not beside each other: %s", text)
	}
}

// A directory or any other kind alone is a grant, and travels.
func TestGrantsThatAreNotEmpty(t *testing.T) {
	t.Parallel()
	for _, g := range []Grants{
		{Files: []FileGrant{{Folder: "/flows", Path: "data", Guest: "/data"}}},
		{Grants: access.Grants{Artifacts: true}},
		{Grants: access.Grants{Clock: access.Real}},
	} {
		text, err := json.Marshal(Call{Grants: g})
		if err != nil || g.IsZero() || !strings.Contains(string(text), `"grants":{`) {
			t.Errorf("%+v: %s %v", g, text, err)
		}
	}
	if g := (Grants{}); !g.IsZero() {
		t.Error("no grant is not zero")
	}
}
