package hostile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// report is what a child says of one case, as a line of JSON.
type report struct {
	Name     string
	Problems []string
	Delays   []string // what took too long, which it may do on a busy machine
	Endings  []string // different ones, in order
	Prepared time.Duration
	Slowest  time.Duration // call
	Late     time.Duration // from when a call had to end to when its place was free
	Attack   stops         // while the attack ran
	Quiet    stops         // right before and after it
	Peak     int64         // MiB
}

// child runs cases, one after the other, against one host.
type child struct {
	host   *host.Host
	source *host.MemorySource
	dir    string
	honest run.Call // of the neighbor
	quiet  stops    // after the case before
	turn   int      // cases so far, so that each good call has a module of its own
}

// runChild is the main function of a child.
func runChild(names []string, out io.Writer) error {
	debug.SetMemoryLimit(1 << 30)
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &child{source: host.NewMemorySource(), dir: dir}
	if c.host, err = host.New(ctx, host.Config{Modules: c.source, Instances: 2, Grace: grace, CompileCommand: compileCommand()}); err != nil {
		return err
	}
	c.honest = callOf(c.keep(ctx, goodModule("neighbour")), "", attack{deadline: time.Minute})
	for range 2 { // the first one prepares the module
		if c.quiet, err = startWatch(ctx, c.host, c.honest, calmBeats).wait(); err != nil {
			return err
		}
	}
	cases := corpus()
	for _, name := range names {
		if count, isMixed := strings.CutPrefix(name, mixed); isMixed {
			if err := json.NewEncoder(out).Encode(runMixed(ctx, count)); err != nil {
				return err
			}
			continue
		}
		i := slices.IndexFunc(cases, func(a attack) bool { return a.name == name })
		if i < 0 {
			return fmt.Errorf("no case has the name %q", name)
		}
		if err := json.NewEncoder(out).Encode(c.measure(ctx, cases[i])); err != nil {
			return err
		}
	}
	return c.host.Close(ctx)
}

// measure runs one case, and a quiet moment afterwards to compare it with.
func (c *child) measure(ctx context.Context, a attack) report {
	r := report{Name: a.name, Quiet: c.quiet}
	resetPeak()
	opened := openFiles()
	c.run(ctx, a, &r)
	if more := openFiles() - opened; more > mostFiles {
		r.complain(fmt.Errorf("%d more files are open than before, bound %d", more, mostFiles))
	}
	if r.Peak = peak(); r.Peak > a.peak {
		r.complain(fmt.Errorf("it took %d MiB, bound %d", r.Peak, a.peak))
	}
	var err error
	c.quiet, err = startWatch(ctx, c.host, c.honest, calmBeats).wait()
	r.complain(err)
	r.Quiet = r.Quiet.most(c.quiet)
	r.Delays = append(r.Delays, r.Attack.beyond(r.Quiet)...)
	r.bound("freeing the place of a call that had to end", r.Late, mostStop+r.Quiet.Neighbour)
	return r
}

// run makes the calls of one case, watched, and then a good one.
func (c *child) run(ctx context.Context, a attack, r *report) {
	digest := c.keep(ctx, a.module())
	folder, err := newFolder(c.dir)
	r.complain(err)
	w := startWatch(ctx, c.host, c.honest, 0)
	r.complain(c.prepare(ctx, a, digest, r))
	for _, s := range a.calls {
		call := callOf(digest, s.function, a)
		if a.granted {
			call.Grants.Files = []run.FileGrant{{Folder: folder, Path: grantedFolder, Guest: "/data", Write: a.writes}}
		}
		r.canceledCall(ctx, c.host, call, s.want, a)
	}
	r.Attack, err = w.end()
	r.complain(err)
	c.good(ctx, r)
	r.complain(checkFolder(folder))
}

// prepare waits until the host knows the module.
func (c *child) prepare(ctx context.Context, a attack, digest string, r *report) error {
	if a.abandon {
		return nil
	}
	watch := startStopwatch()
	_, err := c.host.SignatureOf(ctx, digest)
	r.Prepared = watch.spent()
	r.bound("preparing the module", r.Prepared, a.prepares)
	if _, isFault := errors.AsType[*host.ModuleError](err); isFault || err == nil {
		return c.inspect(ctx, a)
	}
	return err
}

// inspect asks what the module is, as a flow's author does. A module that is
// refused is explained.
func (c *child) inspect(ctx context.Context, a attack) error {
	path := filepath.Join(c.dir, "module.wasm")
	if err := os.WriteFile(path, a.module(), 0o600); err != nil {
		return err
	}
	inspection, err := c.host.Inspect(ctx, path)
	usable := err == nil && inspection.Usable
	fault, isFault := errors.AsType[*host.ModuleError](err)
	switch {
	case !a.either && usable != (a.want != refused), err != nil && !isFault:
		return fmt.Errorf("inspect: usable %t, error %v", usable, err)
	case isFault && (fault.Reason == "" || fault.Hint == ""):
		return fmt.Errorf("inspect: %w, without a reason or a hint", err)
	}
	return nil
}

func (c *child) keep(ctx context.Context, module []byte) string {
	sum := sha256.Sum256(module)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	c.source.Keep(ctx, digest, module) // never fails
	return digest
}

// good calls a module that the host has not seen yet.
func (c *child) good(ctx context.Context, r *report) {
	c.turn++
	digest := c.keep(ctx, goodModule(strconv.Itoa(c.turn)))
	call := callOf(digest, "", attack{deadline: 10 * time.Second})
	watch := startStopwatch()
	result, err := c.host.Invoke(ctx, call)
	if err != nil || string(result.Output) != "42" {
		r.complain(fmt.Errorf("the good call after it: %s %v, error %v", result.Outcome, result.Failure, err))
	}
	r.bound("the good call after it", watch.spent(), goodBound)
}

// goodModule returns 42 as its output. Its name makes it differ from others.
func goodModule(name string) []byte {
	g := guest{imports: []imported{setOutput}, data: []code{at(0, "42")}, custom: []code{customSection(name, "")}}
	g.functions = []function{{export: "run", kind: task, body: seq(number(0), number(2), call(0))}}
	return g.bytes()
}

func callOf(digest, function string, a attack) run.Call {
	return run.Call{
		Run: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Flow: "hostile", Task: "attack", Attempt: 1,
		Module: digest, Function: function, Input: json.RawMessage("1"), Timeout: a.deadline, Limits: a.limits,
	}
}

// canceledCall makes one call of the case, which may cancel it.
func (r *report) canceledCall(ctx context.Context, h *host.Host, call run.Call, want string, a attack) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if a.cancel > 0 {
		defer time.AfterFunc(a.cancel, func() { cancel(run.ErrCanceled) }).Stop()
	}
	due := call.Timeout
	if a.cancel > 0 {
		due = min(due, a.cancel+grace)
	}
	var late stopwatch
	ended := make(chan struct{})
	timer := time.AfterFunc(due, func() {
		defer close(ended)
		late = startStopwatch()
	})
	r.call(ctx, h, call, want, a.answers)
	for patient := time.Now(); isRunning(h, call.Module) && time.Since(patient) < a.answers; {
		time.Sleep(time.Millisecond)
	}
	if !timer.Stop() {
		<-ended
		r.Late = max(r.Late, late.stopped())
	}
}

// isRunning reports whether a call of the module has a place.
func isRunning(h *host.Host, digest string) bool {
	return slices.ContainsFunc(h.Stats().Modules, func(m host.ModuleStats) bool { return m.Digest == digest && m.Running > 0 })
}

// call makes one call and compares how it ends.
func (r *report) call(ctx context.Context, h *host.Host, call run.Call, want string, bound time.Duration) {
	watch := startStopwatch()
	result, err := h.Invoke(ctx, call)
	took := watch.spent()
	r.Slowest = max(r.Slowest, took)
	if err != nil {
		r.complain(fmt.Errorf("call of %q: %w", call.Function, err))
		return
	}
	got := endingOf(result)
	r.note(got)
	if !slices.Contains(strings.Split(want, "|"), got) {
		r.complain(fmt.Errorf("call of %q: %s, want %s: %v", call.Function, got, want, result.Failure))
	}
	if kept := logSize(result.Log); kept > 64<<10 {
		r.complain(fmt.Errorf("call of %q: %d bytes of log, bound 64 KiB", call.Function, kept))
	}
	r.bound(fmt.Sprintf("call of %q", call.Function), took, bound)
}

// note keeps an ending that is a new one.
func (r *report) note(ending string) {
	if !slices.Contains(r.Endings, ending) {
		r.Endings = append(r.Endings, ending)
	}
}

func endingOf(r run.Result) string {
	if r.Failure == nil {
		return string(r.Outcome)
	}
	return string(r.Outcome) + " " + r.Failure.Code
}

func logSize(l run.Log) int {
	size := 0
	for _, line := range l.Lines {
		size += len(line.Message) + len(line.Fields)
	}
	return size
}

func (r *report) complain(err error) {
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
}

func (r *report) bound(what string, took, bound time.Duration) {
	if took > bound {
		r.Delays = append(r.Delays, fmt.Sprintf("%s took %v, bound %v", what, took, bound))
	}
}

// resetPeak begins a new measurement: what earlier cases left is given back.
func resetPeak() {
	debug.FreeOSMemory()
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // Linux; elsewhere nothing is measured
}

// peak is the process's peak resident set in MiB, 0 where it cannot be known.
func peak() int64 { return residentSet("self", "VmHWM:") }

// mostFiles is what the host may keep open for the two modules of a case: the
// images of their memories.
const mostFiles = 8

// openFiles is how many files this process has open, 0 where it cannot be known.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// residentSet reads a field of a process's status, in MiB.
func residentSet(pid, field string) int64 {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte(field))
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
	n, _ := strconv.ParseInt(kilobytes, 10, 64)
	return n >> 10
}
