package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// host is the program serving flows: one process after the other on the same
// data directory.
type host struct {
	t     testing.TB
	flows string // directory of the flow files
	data  string
	args  []string

	cmd    *exec.Cmd
	output *output       // of the present process
	ended  chan struct{} // closed when the present process has ended
}

// serve starts a host for the flows of a directory and returns when it reports that it
// serves them. At the end of the test the host must stop in order.
func serve(t testing.TB, flows string, args ...string) *host {
	t.Helper()
	h := &host{t: t, flows: flows, data: filepath.Join(t.TempDir(), "data"), args: args}
	t.Cleanup(h.finish)
	h.start()
	h.await(" serves ")
	return h
}

// start starts a process. The one before has ended.
func (h *host) start() {
	h.t.Helper()
	args := append([]string{"run", h.flows, "--data", h.data}, h.args...)
	h.cmd = command(args...)
	h.output = newOutput()
	h.cmd.Stdout, h.cmd.Stderr = h.output, h.output
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	h.ended = ended
	go func(cmd *exec.Cmd, out *output) {
		defer close(ended)
		defer out.close()
		cmd.Wait() // its error is in the state of the process too
	}(h.cmd, h.output)
}

// command is the program with the given arguments, not started, away from what
// the person who runs the tests has set.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command(built.program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + built.cache, "XDG_CACHE_HOME=" + built.cache, "NO_COLOR=1"}
	return cmd
}

// runToEnd runs the program, which is to end by itself, and gives what it says and
// its exit code.
func runToEnd(t testing.TB, args ...string) (text string, code int) {
	t.Helper()
	cmd, out := command(args...), newOutput()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait() // its error is in the state of the process too
	return out.all(), cmd.ProcessState.ExitCode()
}

// restart starts the next process and returns when it serves the flows.
func (h *host) restart() {
	h.t.Helper()
	h.start()
	h.await(" serves ")
}

// await returns when a line of the output contains the text.
func (h *host) await(text string) {
	h.t.Helper()
	if err := h.output.await(text); err != nil {
		h.t.Fatalf("%v; the program said:\n%s", err, h.output)
	}
}

// within waits for a channel to be closed or to give something.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
		panic("not reached")
	}
}

func (h *host) signal(s os.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatalf("%s: %v; the program said:\n%s", s, err, h.output)
	}
}

// kill ends the process at once, as a crash would.
func (h *host) kill() {
	h.t.Helper()
	h.signal(syscall.SIGKILL)
	h.wait()
}

// wait gives the exit code of the process, -1 after a signal.
func (h *host) wait() int {
	h.t.Helper()
	select {
	case <-h.ended:
		return h.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		h.cmd.Process.Kill()
		<-h.ended
		h.t.Fatalf("the process did not end within %s; the program said:\n%s", patience, h.output)
		return 0
	}
}

// stop asks for a soft stop, which must succeed.
func (h *host) stop() {
	h.t.Helper()
	h.signal(syscall.SIGTERM)
	if code := h.wait(); code != 0 {
		h.t.Errorf("exit code %d after SIGTERM, want 0; the program said:\n%s", code, h.output)
	}
}

// finish stops what still runs.
func (h *host) finish() {
	if h.cmd == nil || h.cmd.Process == nil {
		return
	}
	select {
	case <-h.ended:
	default:
		h.stop()
	}
	if h.t.Failed() {
		h.t.Logf("the program said:\n%s", h.output)
	}
}

// output collects what a process writes, for those who wait for a line of it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced with each change
	closed  bool
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *output) await(text string) error {
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		found, closed, changed := bytes.Contains(o.text.Bytes(), []byte(text)), o.closed, o.changed
		o.mu.Unlock()
		switch {
		case found:
			return nil
		case closed:
			return fmt.Errorf("the process ended and did not say %q", text)
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("the program did not say %q within %s", text, patience)
		}
	}
}

func (o *output) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// String is the end of the output, long lines cut.
func (o *output) String() string {
	const lines, columns = 80, 300
	all := strings.Split(o.all(), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		all[i] = line[:min(len(line), columns)]
	}
	return strings.Join(all, "\n")
}

// writeFlows makes a directory with a flow file and the guests' modules.
func writeFlows(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	modules, err := filepath.Glob(filepath.Join(built.guests, "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if err := os.Link(m, filepath.Join(dir, filepath.Base(m))); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(t, dir, text)
	return dir
}

// rewrite replaces the flow file of such a directory.
func rewrite(t testing.TB, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "flows.hcl"), []byte(strings.TrimSpace(text)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
