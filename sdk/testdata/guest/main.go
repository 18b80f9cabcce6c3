// Command guest is the plugin that the tests of package sdk run in a wasm
// runtime: one function per thing that crosses the border.
package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

type text struct {
	Text string `json:"text"`
}

func init() {
	sdk.Plugin(sdk.Info{
		Name: "guest", Version: "1.2.3", Description: "Everything that crosses the border.", Licence: "Apache-2.0",
		Wants: []sdk.Capability{{Name: "files", Why: "reads <nothing>"}},
	})
	sdk.Function("main", upper).Describe("Shouts <politely>.").Idempotent()
	sdk.Function("configured", configured).Config(text{})
	sdk.Function("identity", identity)
	sdk.Function("fail", fail)
	sdk.Function("log", log)
	sdk.Function("stop", stop)
	sdk.Function("wait", wait)
	sdk.Function("crash", crash)
}

func upper(_ sdk.Context, in text) (text, error) {
	return text{strings.ToUpper(in.Text)}, nil
}

func configured(ctx sdk.Context, _ struct{}) (text, error) {
	out := text{"default"}
	err := ctx.Config(&out)
	return out, err
}

func identity(ctx sdk.Context, _ struct{}) (sdk.Identity, error) {
	return ctx.Call(), nil
}

func fail(_ sdk.Context, in text) (struct{}, error) {
	return struct{}{}, sdk.Retry(&sdk.Error{Code: "busy", Details: in, Err: errors.New(in.Text)}, 1500*time.Millisecond)
}

func log(ctx sdk.Context, in text) (struct{}, error) {
	ctx.Log().Info("plain")
	ctx.Log().With("a", 1).WithGroup("g").Warn(in.Text, "b", true)
	return struct{}{}, nil
}

// stop spins until the host wants it to stop and gives the reason.
func stop(ctx sdk.Context, _ struct{}) (text, error) {
	_, limited := ctx.Deadline()
	for ctx.Err() == nil {
	}
	<-ctx.Done()
	if !limited {
		return text{ctx.Err().Error()}, nil
	}
	return text{ctx.Err().Error() + " with a deadline"}, nil
}

// wait waits until the host wants it to stop, in its own context.
func wait(ctx sdk.Context, _ struct{}) (text, error) {
	child, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	<-child.Done()
	left, _ := ctx.Canceled()
	return text{child.Err().Error() + ", " + left.String() + " left"}, nil
}

func crash(sdk.Context, struct{}) (struct{}, error) {
	panic("boom")
}

func main() {}
