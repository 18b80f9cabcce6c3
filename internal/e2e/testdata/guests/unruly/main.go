// Command unruly is a plugin whose functions do what a host must cope with, and
// a few that tests steer.
package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

func init() {
	sdk.Function("echo", echo)
	sdk.Function("hold", hold)
	sdk.Function("nap", nap)
	sdk.Function("trap", trap)
	sdk.Function("spin", spin)
	sdk.Function("quit", quit)
	sdk.Function("overflow", overflow)
	sdk.Function("hoard", hoard)
	sdk.Function("chatter", chatter)
}

type nothing struct{}

func echo(_ sdk.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }

type holding struct {
	Hold bool `json:"hold"`
}

type held struct {
	Attempt int `json:"attempt"`
}

// hold does not end by itself on its first attempt when it is asked to: the
// attempt is under way for as long as a test needs it.
func hold(ctx sdk.Context, in holding) (held, error) {
	attempt := ctx.Call().Attempt
	if in.Hold && attempt == 1 {
		time.Sleep(time.Hour)
	}
	return held{attempt}, nil
}

type rest struct {
	Milliseconds int `json:"milliseconds"`
}

func nap(_ sdk.Context, in rest) (rest, error) {
	time.Sleep(time.Duration(in.Milliseconds) * time.Millisecond)
	return in, nil
}

func trap(sdk.Context, nothing) (nothing, error) { panic("out of order") }

func spin(sdk.Context, nothing) (nothing, error) {
	for {
	}
}

func quit(sdk.Context, nothing) (nothing, error) {
	os.Exit(3)
	return nothing{}, nil
}

func overflow(sdk.Context, nothing) (string, error) { return strings.Repeat("x", 4<<20), nil }

func hoard(sdk.Context, nothing) (int, error) {
	var all [][]byte
	for {
		all = append(all, make([]byte, 1<<20))
	}
}

// chatter logs far more than is kept of a log, and succeeds.
func chatter(ctx sdk.Context, _ nothing) (string, error) {
	for range 2000 {
		ctx.Log().Info(strings.Repeat("blah ", 100))
	}
	return "done", nil
}

func main() {}
