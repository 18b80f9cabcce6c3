package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/flows"
)

func decoded(t *testing.T, source string) Settings {
	t.Helper()
	s, diags := decodeSettings([]byte(source), "flowhost.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return s
}

func TestChanges(t *testing.T) {
	t.Parallel()
	before := decoded(t, `
workers      = 4
cancel_grace = "2s"
history {
  age = "720h"
}
nats {
  listen = "127.0.0.1:4222"
}
`)
	after := decoded(t, `
workers   = 0
in_flight = 600
log_level = "debug"
history {
  age = "24h"
}
limits {
  max_output = "512KiB"
}
memory = "4GiB"
`)
	want := []Change{
		{"workers", "4", "0", true},
		{"in_flight", "default", "600", true},
		{"cancel_grace", "2s", "default", true},
		{"limits.output", "default", "512KiB", true}, // lowered to its maximum
		{"limits.max_output", "none", "512KiB", true},
		{"log_level", "info", "debug", true},
		{"history.age", "720h0m0s", "24h0m0s", true},
		{"memory", "default", "4GiB", false},
		{"nats.listen", "127.0.0.1:4222", "default", false},
	}
	if diff := cmp.Diff(want, Changes(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Changes(after, decoded(t, "")); len(got) != 7 {
		t.Errorf("without settings: %v", got)
	}
	if got := Changes(after, after); got != nil {
		t.Errorf("without a change: %v", got)
	}
	if got := Changes(Settings{}, decoded(t, "")); got != nil {
		t.Errorf("an empty file is no change: %v", got)
	}
}

// Every setting of the file is in the table, so that no change of one goes unnoticed.
func TestTableHasEverySetting(t *testing.T) {
	t.Parallel()
	var want, got []string
	var collect func(prefix string, block reflect.Type)
	collect = func(prefix string, block reflect.Type) {
		for i := range block.NumField() {
			name, kind, _ := strings.Cut(block.Field(i).Tag.Get("hcl"), ",")
			if kind == "block" {
				collect(prefix+name+".", block.Field(i).Type.Elem())
				continue
			}
			want = append(want, prefix+name)
		}
	}
	collect("", reflect.TypeFor[settingsFile]())
	want = append(want, flows.OperatorBlocks()...)
	for _, s := range table {
		got = append(got, s.name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The documentation has every setting, and when a change of it applies.
func TestTableOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, found := strings.Cut(string(page), "<!-- settings:")
	rows, _, ended := strings.Cut(rows, "<!-- end of settings -->")
	if !found || !ended {
		t.Fatal("the page has no table")
	}
	want, got := map[string]bool{}, map[string]bool{}
	for _, s := range table {
		want[s.name] = s.live
	}
	for row := range strings.Lines(rows) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			got[name[1]] = strings.HasPrefix(cells[2], " on reload")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whether a change applies on reload (-want +got):\n%s", diff)
	}
}
