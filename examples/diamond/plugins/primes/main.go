// Command primes is the plugin of the diamond example: it counts primes, in
// parts that can be counted at the same time.
package main

import "github.com/flowhost/flowhost/sdk"

// maxLimit bounds the work: counting up to it takes seconds in a sandbox, not minutes.
const maxLimit = 5_000_000

type request struct {
	Limit int `json:"limit"`
}

// span holds the numbers from From up to, not including, To.
type span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

type halves struct {
	Left  span `json:"left"`
	Right span `json:"right"`
}

// tally is what was counted in one or several spans.
type tally struct {
	Primes  int `json:"primes"`
	Largest int `json:"largest"` // 0 without any
}

func init() {
	sdk.Plugin(sdk.Info{Name: "primes", Version: "1.0.0", Description: "Counts primes by trial division."})
	sdk.Function("count", count).Describe("Counts the primes of a span.")
	sdk.Function("split", split).Describe("Halves the numbers below a limit.")
	sdk.Function("join", join).Describe("Adds up the counts of spans.")
}

func split(_ sdk.Context, in request) (halves, error) {
	if in.Limit < 2 || in.Limit > maxLimit {
		return halves{}, sdk.Fail("limit", "the limit is %d; it must be between 2 and %d", in.Limit, maxLimit)
	}
	middle := in.Limit / 2
	return halves{Left: span{0, middle}, Right: span{middle, in.Limit}}, nil
}

func count(ctx sdk.Context, in span) (tally, error) {
	const lookEvery = 1 << 14 // numbers between two looks at the context
	if in.From < 0 || in.To > maxLimit {
		return tally{}, sdk.Fail("span", "the span %d to %d is not within 0 to %d", in.From, in.To, maxLimit)
	}
	var t tally
	for n := in.From; n < in.To; n++ {
		if n%lookEvery == 0 && ctx.Err() != nil {
			return tally{}, ctx.Err()
		}
		if prime(n) {
			t.Primes++
			t.Largest = n
		}
	}
	ctx.Log().Info("counted", "from", in.From, "to", in.To, "primes", t.Primes)
	return t, nil
}

func prime(n int) bool {
	if n < 4 {
		return n >= 2
	}
	if n%2 == 0 {
		return false
	}
	for d := 3; d*d <= n; d += 2 {
		if n%d == 0 {
			return false
		}
	}
	return true
}

func join(_ sdk.Context, parts []tally) (tally, error) {
	var sum tally
	for _, part := range parts {
		sum.Primes += part.Primes
		sum.Largest = max(sum.Largest, part.Largest)
	}
	return sum, nil
}

func main() {}
