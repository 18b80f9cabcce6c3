package hostile

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/internal/testkit/foreign"
)

// ownDirectory is what the host makes in a cache that it is given.
const ownDirectory = "flowhost-modules"

// TestForeignDirectories gives somebody else's directories to every command that
// takes one, as its data and as its cache: nothing in them changes but what the host
// makes for itself.
func TestForeignDirectories(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if *everything {
		seeds = 50
	}
	asData := [][]string{
		{"run", "FLOWS", "--nats-listen", "127.0.0.1:0"}, {"exec", "FLOWS", "--flow", "neighbour", "--input", "{}"},
		{"runs"}, {"schedules"}, {"plan", "FLOWS"}, {"trigger", "neighbour"},
	}
	asCache := [][]string{
		{"exec", "FLOWS", "--flow", "neighbour", "--input", "{}"}, {"validate", "FLOWS"}, {"run", "FLOWS", "--nats-listen", "127.0.0.1:0", "--data", "DATA"},
		{"test", "FLOWS"}, {"simulate", "FLOWS"},
	}
	for seed := range seeds {
		for _, args := range asData {
			if name := fmt.Sprintf("data/%d/%s", seed, args[0]); chosen(name, true) {
				t.Run(name, func(t *testing.T) { leavesAlone(t, seed, "", append(args, "--data", "FOREIGN")) })
			}
		}
		for _, args := range asCache {
			if name := fmt.Sprintf("cache/%d/%s", seed, args[0]); chosen(name, true) {
				t.Run(name, func(t *testing.T) { leavesAlone(t, seed, `cache = "../foreign"`, args) })
			}
		}
	}
}

// leavesAlone runs a command until it ends or serves, and compares the directory
// before and after.
func leavesAlone(t *testing.T, seed uint64, settings string, args []string) {
	dir := t.TempDir()
	tree, outside, flows := filepath.Join(dir, "foreign"), filepath.Join(dir, "outside"), filepath.Join(dir, "flows")
	for _, d := range []string{tree, outside, flows} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	foreign.Grow(t, tree, outside, seed)
	for name, text := range map[string]string{"honest.hcl": honestFlows, "flowhost.hcl": settings} {
		if err := os.WriteFile(filepath.Join(flows, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(built.guests, "unruly.wasm"), filepath.Join(flows, "unruly.wasm")); err != nil {
		t.Fatal(err)
	}
	var except []string
	if own := filepath.Join(tree, ownDirectory); settings != "" {
		if _, err := os.Lstat(own); os.IsNotExist(err) {
			except = []string{own}
		}
	}
	before := foreign.Take(t, except, tree, outside)
	said := runShortly(t, strings.NewReplacer("FLOWS", flows, "DATA", filepath.Join(dir, "data"), "FOREIGN", tree), args)
	after := foreign.Take(t, except, tree, outside)
	if !maps.Equal(before, after) {
		t.Errorf("%s changed a directory of somebody else (-before +after):\n%s\nIt said:\n%s", strings.Join(args, " "), cmp.Diff(before, after), clip([]byte(said)))
	}
}

// runShortly runs a command until it ends, or serves and is stopped.
func runShortly(t *testing.T, names *strings.Replacer, args []string) string {
	t.Helper()
	var named []string
	for _, arg := range args {
		named = append(named, names.Replace(arg))
	}
	program := built.program
	program.Env = nil
	p, err := program.Start(named...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startup)
	defer cancel()
	if p.Await(ctx, " serves ") == nil {
		waitFor(ctx, 10*time.Millisecond) // what begins once it serves
		p.Stop(ctx)                       // how it ends is another test's
	}
	p.Kill()
	return p.Output()
}
