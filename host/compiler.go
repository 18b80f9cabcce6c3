package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sync/semaphore"

	"github.com/flowhost/flowhost/host/internal/wasm"
)

// What is compiled in the host's own process: what its forecast keeps within
// these. Nothing can interrupt it there, and nothing gives back what it takes.
const (
	processWork   = 200 * time.Millisecond // of a processor
	processMemory = 128 << 20
)

// maxChildren is how many children compile at a time.
const maxChildren = 2

// ErrCompileBudget is wrapped by the *[ModuleError] of a module that needs more
// to be compiled than [Config] allows.
var ErrCompileBudget = errors.New("compiling it is over the budget")

// compiler compiles modules in children of this process.
type compiler struct {
	command []string // that calls CompileChild; empty: there are no children
	dir     string   // of the cache in which they leave native code
	private bool     // it was made for this host alone
	time    time.Duration
	memory  int64
	places  *semaphore.Weighted
}

// newCompiler makes the compiler of a host, and gives the cache through which
// children hand over native code: the host's own, or else one in a directory that
// close removes.
func newCompiler(config Config, cache wazero.CompilationCache) (*compiler, wazero.CompilationCache, error) {
	c := &compiler{
		command: config.CompileCommand, dir: CachePath(config.CacheDir), time: config.CompileTime, memory: config.CompileMemory,
		places: semaphore.NewWeighted(maxChildren),
	}
	if cache != nil || len(c.command) == 0 || config.Engine != Compiler {
		return c, cache, nil
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "flowhost-code-"); err == nil {
		c.private = true
		cache, err = wazero.NewCompilationCacheWithDir(c.dir)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a directory for compiled modules: %w", err), c.close())
	}
	return c, cache, nil
}

func (c *compiler) close() error {
	if !c.private {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// fits reports whether compiling needs no child.
func fits(f wasm.Forecast) bool {
	return f.Work <= int64(processWork) && f.Memory <= processMemory
}

// compile lets a child compile a module. It fails with a *ModuleError, or with
// the cause with which ctx ended, which ends the child at once.
func (c *compiler) compile(ctx context.Context, module []byte, f *estimate) error {
	if len(c.command) == 0 {
		return f.over(fmt.Sprintf("%v of processor time and %s of memory, which a host without a compile command may use", processWork, megabytes(processMemory)))
	}
	if err := c.places.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer c.places.Release(1)
	err := c.run(ctx, module, f)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// patience is how long a child may take for each second of processor time that
// it may use: it runs at a low priority.
const patience = 5

func (c *compiler) run(ctx context.Context, module []byte, f *estimate) error {
	ctx, cancel := context.WithTimeout(ctx, patience*c.time)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	said := &beginning{limit: 4 << 10}
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return &ModuleError{passing: true, Reason: "the process that compiles it cannot be started: " + err.Error(), Hint: "compiling needs memory and processes: look at the host's limits"}
	}
	job, _ := json.Marshal(compileJob{Dir: c.dir, Size: len(module), CPU: int64((c.time + time.Second - 1) / time.Second), Memory: c.memory, Code: c.memory / 8})
	_, err = io.Copy(stdin, io.MultiReader(bytes.NewReader(append(job, '\n')), bytes.NewReader(module)))
	if waited := cmd.Wait(); waited == nil {
		return nil
	} else if err == nil {
		err = waited
	}
	return c.explain(ctx, cmd.ProcessState, said.String(), f, err)
}

// explain says why a child did not leave native code.
func (c *compiler) explain(ctx context.Context, state *os.ProcessState, said string, f *estimate, err error) error {
	const outOfMemory, noMemory, cpuSignal, fileSize = "out of memory", "cannot allocate memory", "SIGXCPU", "file too large"
	switch {
	case state.ExitCode() == childRefused && !strings.Contains(said, fileSize):
		return compileFault(errors.New(said))
	case ctx.Err() != nil, strings.Contains(said, cpuSignal), state.UserTime()+state.SystemTime() >= c.time:
		return f.over(fmt.Sprintf("%v of processor time", c.time))
	case strings.Contains(said, outOfMemory), strings.Contains(said, noMemory):
		return f.over(megabytes(c.memory) + " of memory")
	case strings.Contains(said, fileSize), endedBySize(state):
		return f.over(megabytes(c.memory/8) + " of native code")
	}
	line, _, _ := strings.Cut(said, "\n")
	return &ModuleError{passing: true, Reason: fmt.Sprintf("the process that compiles it ended early: %v: %s", err, line), Hint: "look at the host's memory, and for room in the cache of compiled modules"}
}

// estimate is the forecast of a module, in words for its author.
type estimate struct {
	wasm.Forecast
	function string // the worst one
}

// over says which budget a module exceeds.
func (f *estimate) over(budget string) *ModuleError {
	return &ModuleError{
		cause:  ErrCompileBudget,
		Reason: fmt.Sprintf("compiling it needs more than %s; the most goes to %s of %d bytes, with %d blocks and branches", budget, f.function, f.Size, f.Edges),
		Hint:   "split that function, or the switch or table of branches in it, into several",
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// beginning keeps the first bytes that are written.
type beginning struct {
	bytes.Buffer
	limit int
}

func (b *beginning) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.limit-b.Len())])
	return len(p), nil
}
