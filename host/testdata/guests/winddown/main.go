// Command winddown is a plugin whose functions say on their log that they have
// begun, and then do not end by themselves, or not soon: each of them finds out in
// its own way that its call is canceled, or does not care.
package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

func main() {}

func init() {
	add("looks", looks)
	add("receives", receives)
	add("selects", selects)
	add("derives", derives)
	add("yields", yields)
	add("sleeps", sleeps)
	add("answers", answers)
	add("tidies", tidies)
	add("panics", panics)
	add("exits", exits)
	add("naps", naps)
	add("loops", loops)
	add("sleeps_on", sleepsOn)
	sdk.Function("counts", func(ctx sdk.Context, _ struct{}) (int, error) { calls++; return calls, ctx.Err() })
}

// calls shows what an earlier call has left behind.
var calls int

func add(name string, fn func(sdk.Context) (string, error)) {
	sdk.Function(name, func(ctx sdk.Context, _ struct{}) (string, error) {
		calls++
		ctx.Log().Info("begun")
		return fn(ctx)
	})
}

// end reports that the function has learned of its end, and when it has to be there.
func end(ctx sdk.Context) error {
	left, canceled := ctx.Canceled()
	return &sdk.Error{
		Code: "stopped", Message: "half done", Err: ctx.Err(), Retryable: true,
		Details: map[string]any{"left": left.Milliseconds(), "canceled": canceled},
	}
}

func looks(ctx sdk.Context) (string, error) {
	for ctx.Err() == nil {
	}
	return "", end(ctx)
}

func receives(ctx sdk.Context) (string, error) {
	<-ctx.Done()
	return "", end(ctx)
}

func selects(ctx sdk.Context) (string, error) {
	select {
	case <-ctx.Done():
		return "", end(ctx)
	case <-time.After(time.Hour):
		return "", errors.New("an hour has passed")
	}
}

func derives(ctx sdk.Context) (string, error) {
	child, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	<-child.Done()
	if errors.Is(child.Err(), context.DeadlineExceeded) {
		return "", child.Err()
	}
	return "", end(ctx)
}

// yields computes, and lets the watcher of the context run.
func yields(ctx sdk.Context) (string, error) {
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	for child.Err() == nil {
		runtime.Gosched()
	}
	return "", end(ctx)
}

// sleeps is woken by nobody, but time passes fast.
func sleeps(ctx sdk.Context) (string, error) {
	defer context.AfterFunc(ctx, func() {})() // with a watcher that hears of it before
	time.Sleep(time.Hour)
	return "", end(ctx)
}

func answers(ctx sdk.Context) (string, error) {
	<-ctx.Done()
	return "an answer", nil
}

// tidies needs what it was granted.
func tidies(ctx sdk.Context) (string, error) {
	if err := os.WriteFile("/out/lock", nil, 0o600); err != nil {
		return "", err
	}
	<-ctx.Done()
	if err := os.Remove("/out/lock"); err != nil {
		return "", err
	}
	return "", end(ctx)
}

func panics(ctx sdk.Context) (string, error) {
	<-ctx.Done()
	panic("in a hurry")
}

func exits(ctx sdk.Context) (string, error) {
	<-ctx.Done()
	os.Exit(3)
	return "", nil
}

// naps sleeps while it winds down.
func naps(ctx sdk.Context) (string, error) {
	<-ctx.Done()
	for range 10 {
		time.Sleep(time.Minute)
	}
	return "", end(ctx)
}

func loops(sdk.Context) (string, error) {
	for {
	}
}

func sleepsOn(sdk.Context) (string, error) {
	for {
		time.Sleep(time.Second)
	}
}
