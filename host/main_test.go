package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/internal/testkit/gobuild"
	"github.com/flowhost/flowhost/run"
)

// fixture is what all tests share: guests that are built once.
var fixture struct {
	dir string
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == host.CompileArgument {
		os.Exit(host.CompileChild(context.Background(), os.Stdin, os.Stderr))
	}
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "host-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	fixture.dir = dir
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

var guests sync.Map // func() error by name

// guest builds a guest program of testdata once and gives its path.
func guest(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(fixture.dir, name+".wasm")
	build, _ := guests.LoadOrStore(name, sync.OnceValue(func() error {
		if err := buildGuest(name, path); err != nil {
			return err
		}
		return compileGuest(path)
	}))
	if err := build.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return path
}

func buildGuest(name, path string) error {
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", path}
	if name != "command" {
		args = append(args, "-buildmode=c-shared")
	}
	cmd := exec.Command("go", append(args, "./testdata/guests/"+name)...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building guest %s: %w\n%s", name, err, out)
	}
	return nil
}

// compileGuest fills the cache, so that not every test that begins with the
// guest compiles it.
func compileGuest(path string) error {
	ctx := context.Background()
	h, err := host.New(ctx, host.Config{CacheDir: moduleCache(), CompileCommand: compileCommand()})
	if err != nil {
		return err
	}
	_, err = h.Inspect(ctx, path)
	return errors.Join(err, h.Close(ctx))
}

func moduleCache() string { return filepath.Join(gobuild.ModuleCache(), "flowhost") }

// compileCommand is this program as the one that compiles modules.
func compileCommand() []string { return []string{os.Args[0], host.CompileArgument} }

// newHost makes a host that ends with the test. Hosts share a cache of native
// code, so that each guest is compiled once.
func newHost(t testing.TB, config host.Config) *host.Host {
	t.Helper()
	config.CacheDir = moduleCache()
	if config.CompileCommand == nil {
		config.CompileCommand = compileCommand()
	}
	h, err := host.New(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

// load gives the module in a file to the host and says its digest.
func load(t testing.TB, h *host.Host, path string) string {
	t.Helper()
	signature, err := h.Signature(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return signature.Digest
}

// loadBytes does the same for a module that the test has assembled.
func loadBytes(t testing.TB, h *host.Host, module []byte) string {
	t.Helper()
	return load(t, h, writeFile(t, "module.wasm", module))
}

func writeFile(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// callOf is a call with all that identifies it filled in.
func callOf(module, function, input string) run.Call {
	return run.Call{
		Run: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Flow: "orders", Task: "price", Key: "eu", Attempt: 1,
		Scheduled: time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC),
		Module:    module, Function: function, Input: json.RawMessage(input),
		Timeout: time.Minute,
	}
}

func invoke(t testing.TB, h *host.Host, call run.Call) run.Result {
	t.Helper()
	result, err := h.Invoke(t.Context(), call)
	if err != nil {
		t.Fatalf("%s: %v", call.Function, err)
	}
	return result
}

// wantOutput fails the test unless the call succeeded with that output.
func wantOutput(t testing.TB, result run.Result, want string) {
	t.Helper()
	if result.Outcome != run.OutcomeSucceeded || string(result.Output) != want {
		t.Fatalf("%s %s %v, want succeeded %s\nlog: %+v", result.Outcome, result.Output, result.Failure, want, result.Log)
	}
	if result.Failure != nil || result.Duration <= 0 {
		t.Errorf("failure %v, duration %v", result.Failure, result.Duration)
	}
}

// wantFailure fails the test unless the call ended so; it gives the failure.
func wantFailure(t testing.TB, result run.Result, outcome run.Outcome, code string) *run.Failure {
	t.Helper()
	if result.Outcome != outcome || result.Failure == nil || result.Failure.Code != code || result.Failure.Outcome != outcome {
		t.Fatalf("%s %s %+v, want %s with code %q\nlog: %+v", result.Outcome, result.Output, result.Failure, outcome, code, result.Log)
	}
	if result.Output != nil {
		t.Errorf("a call that did not succeed has the output %s", result.Output)
	}
	return result.Failure
}
