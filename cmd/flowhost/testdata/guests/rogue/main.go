// Command rogue is a plugin that does what plugins should not do.
package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

func main() {}

func init() {
	sdk.Function("echo", echo)
	sdk.Function("trap", trap)
	sdk.Function("loop", loop)
	sdk.Function("exit", exit)
	sdk.Function("megabytes", megabytes)
	sdk.Function("noisy", noisy)
	sdk.Function("flaky", flaky)
	sdk.Function("patient", patient)
	sdk.Function("nap", nap)
}

// echo gives its input back, with the configuration when there is one.
func echo(ctx sdk.Context, in any) (any, error) {
	var config any
	if err := ctx.Config(&config); err != nil || config == nil {
		return in, err
	}
	return []any{in, config}, nil
}

func trap(sdk.Context, any) (any, error) {
	var none []int
	return none[len(os.Args)+7], nil
}

// loop never looks at anything that could end it.
func loop(sdk.Context, any) (uint64, error) {
	for n := uint64(1); ; n++ {
		if n == 0 {
			return n, nil
		}
	}
}

func exit(sdk.Context, any) (any, error) {
	os.Exit(3)
	return nil, nil
}

func megabytes(sdk.Context, any) (string, error) {
	return strings.Repeat("x", 5<<20), nil
}

// noisy tells much, and at the end something that a terminal would obey.
func noisy(ctx sdk.Context, _ any) (any, error) {
	for i := range 20 {
		ctx.Log().Info("working", "step", i)
	}
	ctx.Log().Warn("\x1b[2Jcleared")
	return nil, sdk.Fail("tired", "too much work")
}

// flaky fails at its first attempt.
func flaky(ctx sdk.Context, _ any) (int, error) {
	if attempt := ctx.Call().Attempt; attempt > 1 {
		return attempt, nil
	}
	return 0, errors.New("not yet")
}

// patient waits to be stopped.
func patient(ctx sdk.Context, _ any) (any, error) {
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return nil, ctx.Err()
}

// nap takes its time and cannot be hurried.
func nap(sdk.Context, any) (any, error) {
	time.Sleep(300 * time.Millisecond)
	return "rested", nil
}
