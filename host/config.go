package host

import (
	"cmp"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run"
)

// Config configures a host. The zero value works.
type Config struct {
	// CacheDir keeps compiled modules between processes, in a directory that the
	// host makes there ([CachePath]). That holds native code that is run without
	// further checks, so it is its owner's alone; one that others may use, or that
	// no host has made, is left alone, with a warning. Default: compiled modules
	// are kept in memory only.
	CacheDir string

	// Modules is where modules are kept by digest. Default: in memory.
	Modules Source

	// CompileCommand is a program and its arguments that calls [CompileChild], this
	// one as a rule: large modules are compiled in a separate process, whose
	// time and memory are limited. Default: modules are refused of which compiling
	// may take more than 200 ms.
	CompileCommand []string
	CompileTime    time.Duration // of a processor that such a process may use, in whole seconds; default 1 minute
	CompileMemory  int64         // bytes that it may use, of which an eighth may be native code; default 2 GiB

	// Instances is how many calls hold an instance at a time; default 1024. An engine
	// admits calls by the processors, and a host by its memory: this bounds callers that
	// have no engine.
	Instances int

	Memory       int64           // bytes over all calls that run and instances that are idle; default 1 GiB
	Queue        int             // calls that wait for an instance, the next one is turned away; default 1024, negative: none waits
	Idle         int             // instances that are kept ready; default 16 × GOMAXPROCS, negative: none
	IdleTime     time.Duration   // after which an instance that nobody needed is given up; default 1 minute
	Engine       Engine          // default: Compiler
	Depth        int             // calls of recursive functions within each other; default 10 000
	Limits       run.Limits      // of a call that states none; [Host.Tune] changes these and the next two; defaults: memory 256 MiB, output 1 MiB, log 64 KiB, fuel unlimited; at most run.MaxOutput and run.MaxLog
	Timeout      time.Duration   // of a call that states none; default 5 minutes
	Grace        time.Duration   // of a call that is canceled, if its guest asks whether to stop, to come to its own end; default 2 seconds, negative: none
	ModuleSize   int64           // bytes of the largest module; default 64 MiB
	ModuleMemory int64           // bytes of prepared modules, about; those that no call uses go first; default 512 MiB
	ModuleTime   time.Duration   // after which a prepared module that no call needed is given up; default 30 minutes
	Preflight    PreflightLimits // of a module's parts; the defaults are stated there
	Log          *slog.Logger    // faults of the host itself; default: none

	// Private is directories of which no call may be granted anything, however it is
	// named: the host's data and its cache, which is added if it is not there. One
	// that is not there yet is private as well.
	Private []string

	// Reach opens what a call may reach beside its files, with the call's first operation.
	// Default: nothing can be reached.
	Reach func(*run.Call) door.Session

	// Operations takes each operation of a guest and how it ended, in the order in which the
	// guest sees their ends, on the call's goroutine, so it must not block. Default: nobody
	// is interested.
	Operations func(*run.Call, door.Report)

	Doors door.Limits // of the operations of one call; the defaults are stated there

	// Lines takes the lines of guests' logs while the guests run, with the time
	// at which the host took each. They come in order within a call, one at a
	// time, on the call's goroutine, so it must not block; other calls' come at
	// the same time. At most as many bytes as [run.Limits].Log come of a call: what
	// is written once three quarters of them are used waits for the call's end,
	// where a line states how many were left out before the last ones. The last
	// line has come before Invoke returns. Call and line must not be changed.
	// Default: nobody follows.
	Lines func(call *run.Call, at time.Time, line run.LogLine)
}

// Engine is how a guest's code is executed.
type Engine uint8

// Engines of a host.
const (
	Compiler    Engine = iota // native code
	Interpreter               // slow, on every kind of machine
)

// Defaults of Config.
const (
	defaultInstances  = 1024
	defaultMemory     = 1 << 30
	defaultQueue      = 1024
	defaultIdleTime   = time.Minute
	defaultDepth      = 10_000
	defaultTimeout    = 5 * time.Minute
	defaultGrace      = 2 * time.Second
	defaultModuleSize = 64 << 20

	defaultModuleMemory = 512 << 20
	defaultModuleTime   = 30 * time.Minute

	defaultCompileTime   = time.Minute
	defaultCompileMemory = 2 << 30

	defaultCallMemory = 256 << 20
	defaultCallOutput = 1 << 20
	defaultCallLog    = 64 << 10
)

func (c Config) withDefaults() Config {
	if c.Modules == nil {
		c.Modules = NewMemorySource()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Instances = cmp.Or(max(c.Instances, 0), defaultInstances)
	c.Idle = max(cmp.Or(c.Idle, 16*runtime.GOMAXPROCS(0)), 0)
	c.IdleTime = cmp.Or(max(c.IdleTime, 0), defaultIdleTime)
	c.Depth = cmp.Or(min(max(c.Depth, 0), math.MaxInt32), defaultDepth)
	c.Memory = cmp.Or(max(c.Memory, 0), defaultMemory)
	c.Queue = max(cmp.Or(c.Queue, defaultQueue), 0)
	c.ModuleSize = cmp.Or(max(c.ModuleSize, 0), defaultModuleSize)
	c.ModuleMemory = cmp.Or(max(c.ModuleMemory, 0), defaultModuleMemory)
	c.ModuleTime = cmp.Or(max(c.ModuleTime, 0), defaultModuleTime)
	c.CompileTime = cmp.Or(max(c.CompileTime, 0), defaultCompileTime)
	c.CompileMemory = cmp.Or(max(c.CompileMemory, 0), defaultCompileMemory)
	tuned := Tuning{c.Limits, c.Timeout, c.Grace}.withDefaults()
	c.Limits, c.Timeout, c.Grace = tuned.Limits, tuned.Timeout, tuned.Grace
	return c
}

func (t Tuning) withDefaults() Tuning {
	t.Timeout = cmp.Or(max(t.Timeout, 0), defaultTimeout)
	t.Grace = max(cmp.Or(t.Grace, defaultGrace), 0)
	t.Limits = limitsOr(t.Limits, run.Limits{
		Memory: defaultCallMemory, Output: defaultCallOutput, Log: defaultCallLog,
	})
	t.Limits.Output, t.Limits.Log = min(t.Limits.Output, run.MaxOutput), min(t.Limits.Log, run.MaxLog)
	return t
}

// limitsOr is l with its fields that are not positive taken from def.
func limitsOr(l, def run.Limits) run.Limits {
	return run.Limits{
		Memory: cmp.Or(max(l.Memory, 0), def.Memory),
		Output: cmp.Or(max(l.Output, 0), def.Output),
		Log:    cmp.Or(max(l.Log, 0), def.Log),
		Fuel:   cmp.Or(max(l.Fuel, 0), def.Fuel),
	}
}

// Tuning is the part of a [Config] that may change while the host runs. Its fields and
// their defaults are those of the same names there.
type Tuning struct {
	Limits  run.Limits
	Timeout time.Duration
	Grace   time.Duration
}

// Tune replaces the tuning for calls that begin, and the grace also of those that run. A
// module that is prepared already keeps the limits of its initialization.
func (h *Host) Tune(t Tuning) {
	t = t.withDefaults()
	h.tuning.Store(&t)
}
