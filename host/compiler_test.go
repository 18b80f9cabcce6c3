package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
)

// bomb is a module of a shape, which must be within the limits of the preflight.
func bomb(t testing.TB, name string, n int) []byte {
	t.Helper()
	all := shapes()
	i := slices.IndexFunc(all, func(s shape) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("there is no shape %q", name)
	}
	var m genModule
	all[i].build(&m, n)
	module := m.bytes()
	mustRewrite(t, module)
	return module
}

// processorTime is what this process has used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestCompileBombs tries one for each budget, and with -compile.minutes all of them. It is
// not parallel: it counts what this process uses meanwhile.
func TestCompileBombs(t *testing.T) {
	tests := []struct {
		shape  string
		n      int
		time   time.Duration
		memory int64
		budget string
	}{
		{"loads kept over br_if", 16_000, time.Second, 4 << 30, "1s of processor time"},
		{"loads kept over br_if", 30_000, time.Minute, 256 << 20, "256 MiB of memory"},
		{"all locals set in ifs", 4_000, time.Second, 4 << 30, "1s of processor time"},
		{"br_table to one block", 120_000, time.Second, 4 << 30, "1s of processor time"},
	}
	for i, tt := range tests {
		if underRace && tt.memory < 4<<30 || i > 1 && *compileMinutes == 0 {
			continue
		}
		t.Run(tt.shape+" "+tt.budget, func(t *testing.T) {
			path := writeFile(t, "plugin.wasm", bomb(t, tt.shape, tt.n))
			h := newHost(t, host.Config{CompileTime: tt.time, CompileMemory: tt.memory})
			before := processorTime(t)
			var err error
			used := allocated(func() { _, err = h.Inspect(t.Context(), path) })
			fault, ok := errors.AsType[*host.ModuleError](err)
			if !ok || !errors.Is(err, host.ErrCompileBudget) || !strings.Contains(fault.Reason, tt.budget) ||
				!strings.Contains(fault.Reason, "function 0 of ") || fault.Hint == "" || fault.Path != path {
				t.Errorf("error %v, want the budget of %s", err, tt.budget)
			}
			if took := processorTime(t) - before; took > 2*time.Second || used > 64<<20 {
				t.Errorf("the host's own process took %v and allocated %d MiB", took, used>>20)
			}
		})
	}
}

// A module that is too much for the host's own process is compiled once, and
// found in the cache from then on.
func TestCompiledByAChildOnce(t *testing.T) {
	t.Parallel()
	dir, module := t.TempDir(), bomb(t, "ifs", 2_000)
	path := writeFile(t, "plugin.wasm", module)
	for n, command := range [][]string{compileCommand(), {"false"}} {
		h, err := host.New(t.Context(), host.Config{CacheDir: dir, CompileCommand: command})
		if err != nil {
			t.Fatal(err)
		}
		digest := load(t, h, path)
		wantOutput(t, invoke(t, h, callOf(digest, "", "1")), "null")
		if err := h.Close(t.Context()); err != nil {
			t.Errorf("host %d: %v", n, err)
		}
	}
}

func TestCompiledWithoutACache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	h, err := host.New(t.Context(), host.Config{CompileCommand: compileCommand()})
	if err != nil {
		t.Fatal(err)
	}
	wantOutput(t, invoke(t, h, callOf(loadBytes(t, h, bomb(t, "ifs", 2_000)), "", "1")), "null")
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "flowhost-*")); len(left) > 0 || err != nil {
		t.Errorf("%q are left, %v", left, err)
	}
}

func TestRefusedWithoutACompileCommand(t *testing.T) {
	t.Parallel()
	h, err := host.New(t.Context(), host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	_, err = h.Inspect(t.Context(), writeFile(t, "plugin.wasm", bomb(t, "ifs", 2_000)))
	if !errors.Is(err, host.ErrCompileBudget) || !strings.Contains(err.Error(), "200ms of processor time and 128 MiB of memory") {
		t.Errorf("error %v", err)
	}
}

// A module that is not valid is refused in wazero's words before it comes to a
// child.
func TestInvalidModulesNeedNoChild(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{CompileCommand: []string{"false"}})
	module := task(concat(times(5_000, 0x02, noBlockType, opEnd), []byte{opI32Add})...).bytes()
	if _, err := h.Inspect(t.Context(), writeFile(t, "plugin.wasm", module)); err == nil || !strings.Contains(err.Error(), "not a valid module") {
		t.Errorf("error %v", err)
	}
}

func TestChildThatBreaks(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"false"}, {"true"}, {filepath.Join(t.TempDir(), "missing")}, {"sh", "-c", "cat >/dev/null & kill -9 $$"}} {
		h := newHost(t, host.Config{CompileCommand: command})
		_, err := h.Inspect(t.Context(), writeFile(t, "plugin.wasm", bomb(t, "ifs", 2_500)))
		if fault, ok := errors.AsType[*host.ModuleError](err); !ok || errors.Is(err, host.ErrCompileBudget) || fault.Hint == "" {
			t.Errorf("%v: %v", command, err)
		}
	}
}

// TestCloseEndsTheChild closes a host whose child would never end.
func TestCloseEndsTheChild(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	h, err := host.New(t.Context(), host.Config{
		CacheDir: t.TempDir(), CompileCommand: []string{"sh", "-c", "echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 1000"},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, "plugin.wasm", bomb(t, "ifs", 2_500))
	inspected := make(chan error)
	go func() {
		_, err := h.Inspect(context.Background(), path)
		inspected <- err
	}()
	var pid int
	for t.Context().Err() == nil && pid == 0 {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		time.Sleep(time.Millisecond)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-inspected; !errors.Is(err, host.ErrClosed) {
		t.Errorf("error %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child %d is still there: %v", pid, err)
	}
}

// TestChildEndsWithItsParent lets go of a child's stdin, as a parent that is killed.
func TestChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], host.CompileArgument)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	module := mustRewrite(t, bomb(t, "loads kept over br_if", 16_000)).Binary
	job, _ := json.Marshal(map[string]any{"Dir": t.TempDir(), "Size": len(module), "CPU": 1_000, "Memory": 16 << 30, "Code": 1 << 30})
	if _, err := stdin.Write(append(append(job, '\n'), module...)); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	err = cmd.Wait()
	if used := cmd.ProcessState.UserTime(); used > 5*time.Second || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it ended with %v after %v of processor time", err, used)
	}
}

// A bomb that is being compiled keeps no other module from being prepared.
func TestChildKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{CompileCommand: []string{"sleep", "1000"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	for i := range 4 {
		path := writeFile(t, fmt.Sprintf("bomb%d.wasm", i), bomb(t, "ifs", 2_600+i))
		go func() {
			_, _ = h.Inspect(ctx, path)
			done <- struct{}{}
		}()
	}
	wantOutput(t, invoke(t, h, callOf(loadBytes(t, h, noop().bytes()), "", "1")), "null")
	cancel()
	for range 4 {
		<-done
	}
}
