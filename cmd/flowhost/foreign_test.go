package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/internal/testkit/foreign"
)

// foreignFlow is what the commands are given beside a foreign tree. It succeeds.
const foreignFlow = `flow "one" {
  wait "moment" {
    duration = "1ms"
  }
}
`

const foreignTests = `test "one" {
  flow = "one"
  assert {
    condition = run.state == "succeeded"
  }
}
`

// foreignSite is a directory with a flow, beside a tree that belongs to somebody.
type foreignSite struct {
	flows, tree, outside string
	random               *rand.Rand
	except               []string // that may be made
}

// file is one of the files of the tree that can be overwritten, at random.
func (s *foreignSite) file(t *testing.T) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(s.tree, func(path string, e fs.DirEntry, err error) error {
		if info, statErr := os.Stat(path); err == nil && statErr == nil && info.Mode().IsRegular() && info.Size() > 0 {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatal(err, len(all))
	}
	return all[s.random.IntN(len(all))]
}

// settings writes flowhost.hcl beside the flow.
func (s *foreignSite) settings(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.flows, settings.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whatever flag or setting names a tree that flowhost has not made: nothing in it
// changes. Each row of archtest.Writes that a user can lead somewhere has a case.
func TestForeignFilesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module := filepath.Join(dir, "module.wasm")
	text, err := os.ReadFile(filepath.Join(testRoot, "guests", "text-cmd.wasm"))
	if err == nil {
		err = os.WriteFile(module, text, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(`{"abi":1,"functions":[{"name":"count","input":{"type":"string"}}]}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args func(t *testing.T, s *foreignSite) []string
		code int // of each call; -1 for any
	}{
		"run --data": {func(_ *testing.T, s *foreignSite) []string { return []string{"run", s.flows, "--data", s.tree} }, cli.ExitInvalid},
		"run, data is a file": {func(t *testing.T, s *foreignSite) []string {
			return []string{"run", s.flows, "--data", s.file(t)}
		}, cli.ExitInvalid},
		"run in memory": {func(_ *testing.T, s *foreignSite) []string {
			return []string{"run", s.flows, "--data", s.tree, "--durability", "memory"}
		}, cli.ExitInvalid},
		"run with another server": {func(_ *testing.T, s *foreignSite) []string {
			return []string{"run", s.flows, "--data", s.tree, "--nats", "nats://127.0.0.1:1"}
		}, cli.ExitInvalid},
		"data in settings": {func(t *testing.T, s *foreignSite) []string {
			s.settings(t, fmt.Sprintf("data = %q\n", s.tree))
			return []string{"run", s.flows}
		}, cli.ExitInvalid},
		"exec --data": {func(_ *testing.T, s *foreignSite) []string { return []string{"exec", s.flows, "--data", s.tree} }, cli.ExitInvalid},
		"cache in settings": {func(t *testing.T, s *foreignSite) []string {
			s.settings(t, fmt.Sprintf("cache = %q\n", s.tree))
			own := filepath.Join(s.tree, "flowhost-modules")
			if _, err := os.Lstat(own); err != nil {
				s.except = append(s.except, own)
			}
			return []string{"exec", s.flows}
		}, 0},
		"cache is a file": {func(t *testing.T, s *foreignSite) []string {
			s.settings(t, fmt.Sprintf("cache = %q\n", s.file(t)))
			return []string{"exec", s.flows}
		}, 0},
		"plugin build -o": {func(t *testing.T, s *foreignSite) []string {
			return []string{"plugin", "build", module, "-o", s.notWasm(t)}
		}, cli.ExitInvalid},
		"artifact get -o": {func(t *testing.T, s *foreignSite) []string {
			return []string{"artifact", "get", "@latest", "make", "-o", s.file(t)}
		}, cli.ExitInvalid},
		"test --junit": {func(t *testing.T, s *foreignSite) []string {
			return []string{"test", s.flows, "--junit", s.file(t)}
		}, cli.ExitInvalid},
		"settings of another program": {func(t *testing.T, s *foreignSite) []string {
			return []string{"exec", s.flows, "--config", s.file(t)}
		}, -1},
		"fmt":      {func(_ *testing.T, s *foreignSite) []string { return []string{"fmt", s.tree} }, -1},
		"validate": {func(_ *testing.T, s *foreignSite) []string { return []string{"validate", s.tree} }, -1},
		"flows":    {func(_ *testing.T, s *foreignSite) []string { return []string{"exec", s.tree} }, -1},
		"runs":     {func(_ *testing.T, s *foreignSite) []string { return []string{"runs", "--data", s.tree} }, cli.ExitUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(12) {
				s := &foreignSite{flows: t.TempDir(), tree: t.TempDir(), outside: t.TempDir(), random: rand.New(rand.NewPCG(seed, 2))}
				foreign.Grow(t, s.tree, s.outside, seed)
				for file, text := range map[string]string{"one.hcl": foreignFlow, "one.test.hcl": foreignTests} {
					if err := os.WriteFile(filepath.Join(s.flows, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				args := test.args(t, s)
				before := foreign.Take(t, s.except, s.tree, s.outside)
				var out, errout bytes.Buffer
				code := realMain(args, strings.NewReader(""), &out, &errout)
				if test.code >= 0 && code != test.code {
					t.Errorf("seed %d: exit code %d, want %d: %s%s", seed, code, test.code, &out, &errout)
				}
				if diff := cmp.Diff(before, foreign.Take(t, s.except, s.tree, s.outside)); diff != "" {
					t.Errorf("seed %d: %q: %s", seed, args, diff)
				}
			}
		})
	}
}

// notWasm is a file that does not begin as a module does.
func (s *foreignSite) notWasm(t *testing.T) string {
	for {
		name := s.file(t)
		if text, err := os.ReadFile(name); err == nil && !strings.HasPrefix(string(text), "\x00asm") {
			return name
		}
	}
}
