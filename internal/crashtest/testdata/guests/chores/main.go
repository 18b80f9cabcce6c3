// Command chores is a plugin whose functions compute what a test can foretell,
// and leave effects that it can count.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

func init() {
	sdk.Function("add", add)
	sdk.Function("sum", sum)
	sdk.Function("stumble", stumble)
	sdk.Function("note", note)
	sdk.Function("nap", nap)
	sdk.Function("echo", echo)
}

type number struct {
	N    int `json:"n"`
	Plus int `json:"plus"`
}

type result struct {
	N int `json:"n"`
}

func add(_ sdk.Context, in number) (result, error) { return result{in.N + in.Plus}, nil }

func sum(_ sdk.Context, ns []int) (result, error) {
	var all result
	for _, n := range ns {
		all.N += n
	}
	return all, nil
}

// stumble fails at the first attempt.
func stumble(ctx sdk.Context, in number) (result, error) {
	if ctx.Call().Attempt == 1 {
		return result{}, errors.New("stumbled")
	}
	return result{in.N + in.Plus}, nil
}

// note appends the call's idempotency key to a file: an effect that can be counted.
// The line is written at once, so that those of calls side by side do not mix.
func note(ctx sdk.Context, in number) (result, error) {
	call := ctx.Call()
	name := fmt.Sprintf("/effects/%s.txt", call.Run[len(call.Run)-1:])
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = file.WriteString(call.IdempotencyKey + "\n")
	}
	if err == nil {
		err = file.Close()
	}
	return result{in.N + in.Plus}, err
}

func nap(_ sdk.Context, in number) (result, error) {
	time.Sleep(time.Duration(in.Plus) * time.Millisecond)
	return result{in.N}, nil
}

func echo(_ sdk.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }

func main() {}
