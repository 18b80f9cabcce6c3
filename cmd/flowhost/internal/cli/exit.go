package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// Exit codes of all commands.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitInvalid     = 2
	ExitDifference  = 3
	ExitUnreachable = 4
	ExitTimeout     = 5
	ExitCanceled    = 6
	ExitGrowth      = 7
	ExitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// exitMeanings is the table that --help shows.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{ExitOK, "success"},
	{ExitFailed, "the run or call failed, or another error occurred"},
	{ExitInvalid, "invalid usage or invalid files"},
	{ExitDifference, "a difference was found"},
	{ExitUnreachable, "host or NATS unreachable"},
	{ExitTimeout, "timed out while waiting"},
	{ExitCanceled, "canceled"},
	{ExitGrowth, "grants grow"},
	{ExitInterrupted, "interrupted"},
}

// ErrInterrupted is the cause of what a signal ends.
var ErrInterrupted = errors.New("interrupted")

// ExitError ends the program with a code. Without an error inside, the command has
// already reported the failure.
type ExitError struct {
	Code int
	err  error
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Quiet ends the program with a code and no further message.
func Quiet(code int) error { return &ExitError{Code: code} }

// WithCode gives an error an exit code.
func WithCode(code int, err error) error { return &ExitError{Code: code, err: err} }

// Exitf is an error with an exit code.
func Exitf(code int, format string, args ...any) error {
	return &ExitError{Code: code, err: fmt.Errorf(format, args...)}
}

// Report shows the error that ended a command, and returns the exit code.
func (a *App) Report(err error) int {
	var exit *ExitError
	if err != nil && !(errors.As(err, &exit) && exit.err == nil) {
		a.Say("%s %s", a.Errout.Paint(render.Red, "Error:"), Plain(err))
	}
	return CodeOf(err)
}

// CodeOf is the exit code for an error: the one that it carries, or the one for
// its kind.
func CodeOf(err error) int {
	var (
		exit    *ExitError
		request *run.RequestError
		module  *host.ModuleError
		locked  *natsd.LockedError
		creds   *bus.CredentialsError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &request), errors.As(err, &module), errors.As(err, &creds):
		return ExitInvalid
	case errors.As(err, &locked):
		return ExitUnreachable
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitFailed
}
