package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Program is a built flowhost.
type Program struct {
	Path  string   // of the binary
	Cache string   // directory of compiled modules, shared by all processes
	Log   string   // file to which the output of all processes is appended; empty for none
	Env   []string // further variables of the environment, as NAME=VALUE
}

// Command is the program with the given arguments, not started, with an environment
// that is independent of the caller's settings.
func (p Program) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.Path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Cache, "XDG_CACHE_HOME=" + p.Cache, "NO_COLOR=1"}, p.Env...)
	return cmd
}

// Start starts a process.
func (p Program) Start(args ...string) (*Process, error) {
	if p.Log == "" {
		return start(p.Command(args...), nil)
	}
	log, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return start(p.Command(args...), log)
}

// Process is a started program. Its methods are safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	output output
	ended  chan struct{}
}

// start starts a process whose output goes to the log too, if that is not nil.
func start(cmd *exec.Cmd, log io.WriteCloser) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	p.output.changed, p.output.log = make(chan struct{}), log
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, p.output.close())
	}
	go func() {
		defer close(p.ended)
		cmd.Wait()       // the state of the process contains its error
		p.output.close() // the kept output is complete
	}()
	return p, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode is that of a process that has ended, -1 after a signal.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal, if the process has not ended.
func (p *Process) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// Kill ends the process at once, as a crash would, and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Stop requests a graceful shutdown, which must succeed. When ctx ends first, it kills
// the process.
func (p *Process) Stop(ctx context.Context) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("the process does not stop: %w; its output:\n%s", context.Cause(ctx), p.Output())
	}
	if code := p.ExitCode(); code != 0 {
		return fmt.Errorf("the process stopped with exit code %d; its output:\n%s", code, p.Output())
	}
	return nil
}

// Await returns when the output contains the string.
func (p *Process) Await(ctx context.Context, text string) error {
	for {
		found, changed := p.output.has(text)
		if found {
			return nil
		}
		select {
		case <-changed:
		case <-p.ended:
			if found, _ := p.output.has(text); found {
				return nil
			}
			return fmt.Errorf("the process ended without writing %q", text)
		case <-ctx.Done():
			return fmt.Errorf("the process does not write %q: %w", text, context.Cause(ctx))
		}
	}
}

// Output is the end of the output, with long lines cut.
func (p *Process) Output() string {
	const columns = 400
	all := strings.Split(p.output.String(), "\n")
	for i, line := range all {
		all[i] = line[:min(len(line), columns)]
	}
	return strings.Join(all, "\n")
}

// output keeps the end of the output of a process, and wakes those who wait for a
// string in it.
type output struct {
	mu      sync.Mutex
	text    []byte
	changed chan struct{} // closed and replaced with each change
	log     io.WriteCloser
}

// outputKept is the length of the kept output, in bytes.
const outputKept = 64 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if extra := len(o.text) - outputKept; extra > outputKept {
		o.text = append([]byte{}, o.text[extra:]...)
	}
	close(o.changed)
	o.changed = make(chan struct{})
	if o.log != nil {
		return o.log.Write(p)
	}
	return len(p), nil
}

func (o *output) close() error {
	if o.log == nil {
		return nil
	}
	return o.log.Close()
}

func (o *output) has(text string) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Contains(o.text, []byte(text)), o.changed
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text[max(0, len(o.text)-outputKept):])
}
