package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// Exit codes of all commands.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitDifference  = 3
	exitUnreachable = 4
	exitTimeout     = 5
	exitCanceled    = 6
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// exitMeanings is the table that --help shows.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitOK, "success"},
	{exitFailed, "the run or the call failed, or something went wrong"},
	{exitInvalid, "wrong usage, or invalid files"},
	{exitDifference, "a difference was found"},
	{exitUnreachable, "host or NATS not reachable"},
	{exitTimeout, "timed out waiting"},
	{exitCanceled, "canceled"},
	{exitInterrupted, "interrupted"},
}

// errInterrupted ends what a second signal cuts off.
var errInterrupted = errors.New("interrupted")

// exitError ends the program with a code. Without an error inside, everything has
// been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// quiet ends the program with a code after everything was said.
func quiet(code int) error { return &exitError{code: code} }

func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// report shows the error that ended a command, and gives the exit code.
func (a *app) report(err error) int {
	var exit *exitError
	if err != nil && !(errors.As(err, &exit) && exit.err == nil) {
		a.say("%s %s", a.errout.paint(red, "Error:"), err)
	}
	return codeOf(err)
}

// codeOf is the exit code for an error: the one that it states, or the one for
// its kind.
func codeOf(err error) int {
	var (
		exit    *exitError
		request *run.RequestError
		module  *host.ModuleError
		locked  *natsd.LockedError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &request), errors.As(err, &module):
		return exitInvalid
	case errors.As(err, &locked):
		return exitUnreachable
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
