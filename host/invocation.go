package host

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/doorfile"
	"github.com/flowhost/flowhost/host/internal/guestfs"
	"github.com/flowhost/flowhost/host/internal/wasi"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// invocation is the state of one guest while it runs: what it may read, and what
// has written so far. It belongs to the goroutine on which the guest runs.
type invocation struct {
	*request // nil while an instance is initialized: there is no call to know of
	fixed
	abi     string
	limits  run.Limits
	lease   *lease
	refused bool              // its memory was refused a growth
	running *guestFunction    // of its instance; nil while none runs
	memory  *linearMemory     // of its instance; nil before an export runs
	units   api.MutableGlobal // of its instance: what is left of the grant
	meter   meter
	fuel    int64 // units that were used
	grace   grace
	outside outside
	context context.Context // of the export that runs
	results [1]uint64       // of it

	clock   clock
	random  random
	process wasi.Process
	none    guestfs.FS // what is seen without a grant
	stdin   bytes.Reader
	stdout  lineWriter   // of a reactor
	written outputWriter // of a command
	stderr  lineWriter

	output    []byte // of the flowhost ABI; nil: none was set
	oversized bool   // the last output was refused for its size
	failure   *abi.Failure

	log  logBuffer
	last lastWords
}

// request is all that a guest may know of its call.
type request struct {
	call     *run.Call
	function string // the name under which the guest serves it
	input    []byte
	identity []byte      // made when it is asked for
	files    *guestfs.FS // that it was granted; nil for none
}

// newInvocation prepares a call of the named function, with limits that are
// all set. The memory is given to it when it has a lease.
func newInvocation(call *run.Call, abiName, function string, limits run.Limits) *invocation {
	inv := newGuest(abiName, limits)
	r := requestOf(call, function)
	inv.request = &r
	return inv
}

func requestOf(call *run.Call, function string) request {
	return request{call: call, function: function, input: jsonOrNull(call.Input)}
}

// newSetup is what a guest sees while an instance is initialized: the same for
// every instance of every module. It gets nothing that belongs to a call.
func newSetup(abiName string, limits run.Limits, l *lease) *invocation {
	inv := newGuest(abiName, limits)
	inv.lease = l
	inv.clock.set(time.Time{}, 0)
	inv.start(&inv.none)
	return inv
}

func newGuest(abiName string, limits run.Limits) *invocation {
	inv := new(invocation)
	inv.set(abiName, limits)
	return inv
}

// fixed is what an invocation has however often it is used.
type fixed struct {
	walltime func() (sec int64, nsec int32)
	nanotime func() int64
	asleep   func(ns int64)
	awaited  func(ns int64) int64
	opened   func() *doorfile.File
	paused   func()
}

// set prepares an invocation that is zero but for what is fixed.
func (inv *invocation) set(abiName string, limits run.Limits) {
	if inv.walltime == nil {
		inv.fixed = fixed{
			walltime: inv.clock.walltime, nanotime: inv.clock.nanotime,
			asleep:  func(ns int64) { inv.sleep(inv.context, time.Duration(ns)) },
			awaited: func(ns int64) int64 { return int64(inv.await(inv.context, time.Duration(ns))) },
			opened:  func() *doorfile.File { return inv.openDoorFile() },
			paused:  func() { inv.pause(inv.context) },
		}
	}
	inv.abi, inv.limits, inv.log.limit = abiName, limits, limits.Log
	inv.stdout = lineWriter{max: inv.log.maxText(), sink: (*logSink)(inv)}
	inv.stderr = lineWriter{max: inv.log.maxText(), sink: (*stderrSink)(inv)}
	inv.written.limit = limits.Output
}

// start begins a process of the guest, which sees these files.
func (inv *invocation) start(files *guestfs.FS) {
	inv.process = wasi.Process{
		Args:  processArgs,
		Stdin: &inv.stdin, Stdout: &inv.stdout, Stderr: &inv.stderr,
		Random: &inv.random, Walltime: inv.walltime, Nanotime: inv.nanotime,
		Resolution: int64(clockStep), FS: files,
	}
	inv.outside.files = doorfile.FS{FS: files, Open: inv.opened}
	inv.process.FS = &inv.outside.files
	if inv.abi == ABIWASI {
		inv.process.Stdout = &inv.written
	}
}

// open gets the files that the call was granted. Its failure is the call's.
func (inv *invocation) open(ctx context.Context, private privateDirs) *run.Failure {
	if len(inv.call.Grants.Files) == 0 {
		return nil
	}
	if err := private.check(inv.call.Grants.Files); err != nil {
		return rejected(run.CodeGrant, "%v", err)
	}
	files, err := guestfs.Open(func() bool { return inv.over(ctx) }, inv.call.Grants.Files, guestfs.Limits{})
	if err != nil {
		failure := rejected(run.CodeGrant, "%v", err)
		failure.Retryable = true // somebody may put it right
		return failure
	}
	inv.files = files
	return nil
}

// processArgs is the same for all calls: a runtime may look at it before the
// first one. Nobody changes it.
var processArgs = []string{"plugin"}

// logSink takes lines of a reactor's stdout.
type logSink invocation

func (s *logSink) line(text string) { s.log.add(abi.LevelInfo, text, nil) }

// stderrSink takes lines of stderr, where a runtime reports why it broke.
type stderrSink invocation

func (s *stderrSink) line(text string) {
	s.last.hear(text)
	s.log.add(abi.LevelInfo, text, nil)
}

// end closes what the guest left open. Nothing of it runs any more.
func (inv *invocation) end() {
	inv.stdout.close()
	inv.stderr.close()
	inv.process.Close()
	inv.leaveDoor()
	if inv.files == nil {
		return
	}
	if used := inv.files.Close(); used.Reached != "" {
		inv.log.add(abi.LevelWarn, "a limit of the call was reached: "+used.Reached, nil)
	}
}

type invocationKey struct{}

// invocationOf finds the call of which a host function is a part. It is where a
// guest stops that does nothing but call the host, which takes long and few units.
func invocationOf(ctx context.Context) *invocation {
	inv := ctx.Value(invocationKey{}).(*invocation)
	if inv.over(ctx) {
		panic(errInterrupted) // the instance recovers it
	}
	return inv
}

// processOf finds what a guest sees of WASI.
func processOf(ctx context.Context) *wasi.Process { return &invocationOf(ctx).process }

// begin lets the guest see the world of its call. Its monotonic clock continues
// from where it was when the instance was initialized.
func (inv *invocation) begin(elapsed time.Duration) {
	inv.meter = meter{limit: inv.limits.Fuel}
	inv.clock.set(inv.call.Scheduled, elapsed)
	if inv.call.Grants.Clock == access.Real {
		inv.clock.real = time.Now()
	}
	files := &inv.none
	if inv.files != nil {
		files = inv.files
	}
	if inv.abi == ABIWASI {
		inv.stdin.Reset(inv.input)
	}
	inv.start(files)
	inv.random = randomOf(inv.call)
	inv.process.Env = environment(inv.call.Grants.Env)
}

// environment is the variables that a call was granted. A runtime that was initialized before
// the call has read its environment already, and sees none of them.
func environment(granted map[string]string) []string {
	if len(granted) == 0 {
		return nil // most calls: they allocate nothing
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(granted)) {
		all = append(all, name+"="+granted[name])
	}
	return all
}

// blame adopts the guest's log of an initialization that failed: nothing
// of the call ran, and these words explain why.
func (inv *invocation) blame(setup *invocation) {
	setup.stdout.close()
	setup.stderr.close()
	inv.log.adopt(&setup.log)
	inv.last, inv.refused, inv.limits.Memory = setup.last, setup.refused, setup.limits.Memory
}

// result is what the guest gave as its output, by the way of its ABI.
func (inv *invocation) result() []byte {
	if inv.abi == ABIWASI {
		return inv.written.bytes
	}
	return inv.output
}

// field is a part of the call as the guest reads it, nil when there is no such
// field, or no call.
func (r *request) field(f abi.Field) []byte {
	if r == nil {
		return nil
	}
	switch f {
	case abi.FieldInput:
		return r.input
	case abi.FieldConfig:
		return jsonOrNull(r.call.Config)
	case abi.FieldFunction:
		return []byte(r.function)
	case abi.FieldIdentity:
		if r.identity == nil {
			r.identity = identityOf(r.call)
		}
		return r.identity
	}
	return nil
}

func jsonOrNull(v json.RawMessage) []byte {
	if len(v) == 0 {
		return []byte("null")
	}
	return v
}

func identityOf(call *run.Call) []byte {
	text, err := json.Marshal(abi.Identity{
		Flow: call.Flow, Run: string(call.Run), Task: call.Task, Key: call.Key,
		Attempt: call.Attempt, IdempotencyKey: call.IdempotencyKey(), Scheduled: call.Scheduled.UTC(),
	})
	if err != nil { // a year that RFC 3339 cannot write
		return []byte("null")
	}
	return text
}
