package wasi

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sysfs"
)

// goGuest is the guest of testdata, built once.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wasi-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// wazeroGuest is a program that wazero tests its implementation with, by the
// name of its toolchain.
func wazeroGuest(t testing.TB, toolchain string) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "imports/wasi_snapshot_preview1/testdata", toolchain, "wasi.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// ran is what a program did.
type ran struct {
	stdout, stderr string
	status         uint32
}

// run runs a program's _start, in a world of those in worlds, with dir as "/".
func run(t testing.TB, where string, binary []byte, dir string, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	var clock int64
	p := &Process{
		Args: args, Env: []string{"Z=1", "A=two=2"}, Stdin: strings.NewReader("some input"), Stdout: &stdout, Stderr: &stderr,
		Random:   rand.NewChaCha8([32]byte{1}),
		Walltime: func() (int64, int32) { clock += 1000; return 1_700_000_000 + clock/1e9, int32(clock % 1e9) },
		Nanotime: func() int64 { clock += 1000; return clock },
		Sleep:    func(ns int64) { clock += ns },
		FS:       sysfs.DirFS(dir),
	}
	ctx := withProcess(context.Background(), p)
	_, err := worlds()[where].instantiate(t, binary, moduleConfig(p)).ExportedFunction("_start").Call(ctx)
	status, exited := exitStatus(err)
	if err != nil && !exited {
		t.Fatalf("%s: %v\n%s", where, err, &stderr)
	}
	if where == "ours" {
		p.Close()
	}
	return ran{stdout.String(), stderr.String(), status}
}

// tree describes what is below a directory.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, e fs.DirEntry, err error) error {
		var content []byte
		if err == nil && e.Type().IsRegular() {
			content, err = os.ReadFile(filepath.Join(dir, p))
		}
		fmt.Fprintf(&b, "%s %v %q\n", p, e.Type(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGoProgram(t *testing.T) {
	t.Parallel()
	binary, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"ours": t.TempDir(), "theirs": t.TempDir()}
	results := map[string]ran{}
	for where, dir := range dirs {
		results[where] = run(t, where, binary, dir, "guest", "an argument", "")
	}
	if ours, theirs := results["ours"], results["theirs"]; ours != theirs {
		t.Errorf("exit status %d, stderr %q, stdout\n%s\nwazero's: %d, %q\n%s", ours.status, ours.stderr, ours.stdout, theirs.status, theirs.stderr, theirs.stdout)
	}
	if got := results["ours"]; got.status != 7 || got.stderr != "to stderr\n" || !strings.Contains(got.stdout, "\nslept true 2023\n") {
		t.Errorf("exit status %d, stderr %q, stdout\n%s", got.status, got.stderr, got.stdout)
	}
	if ours, theirs := tree(t, dirs["ours"]), tree(t, dirs["theirs"]); ours != theirs {
		t.Errorf("files\n%s\nwazero's\n%s", ours, theirs)
	}
}

// newListing makes a directory for programs that list directories.
func newListing(t testing.TB) string {
	dir := t.TempDir()
	for _, d := range []string{"empty", "some", "some/below", "tons"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"some/-", "some/ab-", "some/" + strings.Repeat("long", 60)}
	for i := range 1500 {
		names = append(names, fmt.Sprint("tons/", i))
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProgramsOfOtherToolchains(t *testing.T) {
	t.Parallel()
	programs := map[string][]string{
		"cargo-wasi": {"ls .", "ls some", "ls empty", "ls tons", "ls some repeat", "ls some/-", "ls missing", "ls ..", "stat", "wrong"},
		"tinygo":     {"ls .", "ls some", "ls empty", "ls tons", "ls some/-", "stat"},
		"zig":        {"ls .", "ls some", "ls empty", "ls tons", "ls some repeat", "ls some/-", "ls missing", "stat", "preopen"},
		"zig-cc":     {"ls .", "ls some", "ls empty", "ls tons", "ls some repeat", "ls some/-", "ls missing", "stat", "poll", "poll 0 500", "sleepmillis 100", "open-rdonly", "open-wronly"},
	}
	for toolchain, lines := range programs {
		binary := wazeroGuest(t, toolchain)
		t.Run(toolchain, func(t *testing.T) {
			t.Parallel()
			dir := newListing(t) // some make files
			for _, line := range lines {
				args := append([]string{"wasi"}, strings.Fields(line)...)
				ours, theirs := run(t, "ours", binary, dir, args...), run(t, "theirs", binary, dir, args...)
				if ours != theirs {
					t.Errorf("%s: %+v\nwazero's: %+v", line, ours, theirs)
				}
				if ours.stdout+ours.stderr == "" && line != "ls empty" {
					t.Errorf("%s says nothing", line)
				}
			}
		})
	}
}
