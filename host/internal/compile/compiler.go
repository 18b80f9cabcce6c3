package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sync/semaphore"
)

// maxChildren is the number of children that compile concurrently.
const maxChildren = 2

// Config configures a [Compiler].
type Config struct {
	Command  []string // calls [Child]; empty: there are no children
	CacheDir string   // as for [OpenCache]; empty: a temporary directory, if there are children
	Time     time.Duration
	Memory   int64
	Log      *slog.Logger
}

// Compiler compiles modules in children of this process.
type Compiler struct {
	Config
	dir     string // of the cache in which the children leave native code
	private bool   // dir was made for this Compiler alone
	places  *semaphore.Weighted
}

// New makes a compiler. It returns the cache through which the children pass native
// code: the given one, or else one in a directory that Close removes.
func New(config Config, cache wazero.CompilationCache) (*Compiler, wazero.CompilationCache, error) {
	c := &Compiler{Config: config, dir: CachePath(config.CacheDir), places: semaphore.NewWeighted(maxChildren)}
	if cache != nil || len(c.Command) == 0 {
		return c, cache, nil
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "flowhost-code-"); err == nil {
		c.private = true
		cache, err = wazero.NewCompilationCacheWithDir(c.dir)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a directory for compiled modules: %w", err), c.Close())
	}
	return c, cache, nil
}

// Dir is the directory of the cache, "" without one.
func (c *Compiler) Dir() string { return c.dir }

// Close removes the directory that New has made.
func (c *Compiler) Close() error {
	if !c.private {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// Settings configures wazero for native code. Parent and child must agree on it,
// because the name of native code in the cache depends on it.
func Settings() wazero.RuntimeConfig { return WithFeatures(wazero.NewRuntimeConfigCompiler()) }

// WithFeatures sets the features of WebAssembly that modules may use. It disables
// wazero's own way to stop guests: they stop at the checks that the rewrite inserts.
func WithFeatures(settings wazero.RuntimeConfig) wazero.RuntimeConfig {
	return settings.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
}

// RefusedError reports that wazero refuses a module.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// BudgetError reports that compiling a module exceeds a limit of the child.
type BudgetError struct {
	Budget string // "1s of processor time"
}

func (e *BudgetError) Error() string { return "compiling needs more than " + e.Budget }

// ProcessError reports that a child could not be started, or ended early, for a reason
// that is not the module's.
type ProcessError struct {
	Reason string
	Hint   string
}

func (e *ProcessError) Error() string { return e.Reason }

// Compile lets a child compile a module. It fails with *RefusedError, *BudgetError,
// *ProcessError, or with the cause with which ctx ended, which kills the child.
func (c *Compiler) Compile(ctx context.Context, module []byte) error {
	if err := c.places.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer c.places.Release(1)
	err := c.run(ctx, module)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// wallTime is how long a child may take for each second of processor time that it may
// use: it runs at a low priority.
const wallTime = 5

func (c *Compiler) run(ctx context.Context, module []byte) error {
	ctx, cancel := context.WithTimeout(ctx, wallTime*c.Time)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	stderr := &beginning{limit: 4 << 10}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return &ProcessError{Reason: "the process that compiles it cannot be started: " + err.Error(), Hint: "compiling needs memory and processes: look at the host's limits"}
	}
	head, _ := json.Marshal(job{Dir: c.dir, Size: len(module), CPU: int64((c.Time + time.Second - 1) / time.Second), Memory: c.Memory, Code: c.Memory / 8})
	_, err = io.Copy(stdin, io.MultiReader(bytes.NewReader(append(head, '\n')), bytes.NewReader(module)))
	if waited := cmd.Wait(); waited == nil {
		return nil
	} else if err == nil {
		err = waited
	}
	return c.explain(ctx, cmd.ProcessState, stderr.String(), err)
}

// explain finds the reason why a child left no native code.
func (c *Compiler) explain(ctx context.Context, state *os.ProcessState, stderr string, err error) error {
	const outOfMemory, noMemory, cpuSignal, fileSize = "out of memory", "cannot allocate memory", "SIGXCPU", "file too large"
	switch {
	case state.ExitCode() == childRefused:
		return &RefusedError{stderr}
	case ctx.Err() != nil, strings.Contains(stderr, cpuSignal), state.UserTime()+state.SystemTime() >= c.Time:
		return &BudgetError{fmt.Sprintf("%v of processor time", c.Time)}
	case strings.Contains(stderr, outOfMemory), strings.Contains(stderr, noMemory):
		return &BudgetError{Megabytes(c.Memory) + " of memory"}
	case strings.Contains(stderr, fileSize), endedBySize(state):
		return &BudgetError{Megabytes(c.Memory/8) + " of native code"}
	}
	line, _, _ := strings.Cut(stderr, "\n")
	return &ProcessError{Reason: fmt.Sprintf("the process that compiles it ended early: %v: %s", err, line), Hint: "look at the host's memory, and for room in the cache of compiled modules"}
}

// Megabytes formats a number of bytes.
func Megabytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// beginning keeps the first bytes that are written.
type beginning struct {
	bytes.Buffer
	limit int
}

func (b *beginning) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.limit-b.Len())])
	return len(p), nil
}
