package flowsim

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/flowhost/flowhost/internal/virtual"
	"github.com/flowhost/flowhost/run"
)

// What calls draw of which nothing is known: how long they take is a number of
// milliseconds with the binomial distribution of so many trials, 5 ms on average,
// and whether they succeed a Bernoulli trial.
const (
	lengthTrials = 100
	lengthChance = 0.05

	DefaultSuccess = 0.88
)

// CodeDrawn is the code of failures that were drawn.
const CodeDrawn = "drawn"

// dice are those of one call; all of its chance is in them.
func (t *trial) dice(task, key string, attempt int) *rand.Rand {
	h := fnv.New64a()
	for _, part := range []string{strconv.Itoa(t.number), task, key, strconv.Itoa(attempt)} {
		io.WriteString(h, part)
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(t.config.Seed, h.Sum64()))
}

// binomial counts the successes of so many trials.
func binomial(r *rand.Rand, trials int, chance float64) int {
	n := 0
	for range trials {
		if r.Float64() < chance {
			n++
		}
	}
	return n
}

// script draws what a call does. Everything is drawn in the same order, whether it is
// made use of or not: what is stated of one thing leaves the others as they are.
func (t *trial) script(call *run.Call, _ time.Time) virtual.ScriptedCall {
	r := t.dice(call.Task, call.Key, call.Attempt)
	takes := time.Duration(binomial(r, lengthTrials, lengthChance)) * time.Millisecond
	chance, choice := r.Float64(), r.Uint64()
	turn := virtual.ScriptedCall{Takes: takes, Result: drawn(chance >= DefaultSuccess)}
	sources := t.known.of(call)
	if past := t.past(call); past != nil {
		turn = past.draw(choice, takes)
		sources.Takes, sources.Ends = FromHistory, FromHistory
	}
	mocked := t.mock(call, &turn, sources)
	t.state(call, &turn, chance, sources)
	switch {
	case turn.Hangs || turn.Result.Failure != nil:
	case mocked != nil:
		turn.Result.Output, sources.Output = mocked, FromMock
	default:
		turn.Result.Output = t.output(call, choice, sources)
	}
	return turn
}

func drawn(fails bool) run.Result {
	if !fails {
		return run.Result{Outcome: run.OutcomeSucceeded}
	}
	return run.Result{Outcome: run.OutcomeFailed, Failure: &run.Failure{
		Outcome: run.OutcomeFailed, Code: CodeDrawn, Message: "the simulation has drawn a failure", Retryable: true,
	}}
}

// mock applies the duration and the outcome of a mock. It returns the output of the call
// if it succeeds, nil without a mocked output.
func (t *trial) mock(call *run.Call, turn *virtual.ScriptedCall, sources *Sources) json.RawMessage {
	if t.config.Mocks == nil {
		return nil
	}
	mocked, diags := t.config.Mocks.Mock(t.trace.Called(call))
	switch {
	case diags.HasErrors():
		sources.Output = FromMock
		*turn = virtual.ScriptedCall{Result: run.Result{Outcome: run.OutcomeRejected, Failure: notEvaluated(diags)}}
		return nil
	case mocked == nil:
		return nil
	}
	if mocked.Timed {
		turn.Takes, turn.Hangs, sources.Takes = mocked.Takes, mocked.Hangs, FromMock
	}
	if mocked.Decided {
		turn.Result, sources.Ends = mocked.Result, FromMock
	}
	return mocked.Result.Output
}

// state lays over it what is stated of the task.
func (t *trial) state(call *run.Call, turn *virtual.ScriptedCall, chance float64, sources *Sources) {
	stated, every := t.config.Tasks[call.Task], t.config.Tasks[EveryTask]
	if !t.own(call) {
		stated = Stated{}
	}
	if stated.Takes == nil {
		stated.Takes = every.Takes
	}
	if stated.Waits == nil {
		stated.Waits = every.Waits
	}
	if stated.Fails == nil {
		stated.Fails = every.Fails
	}
	if stated.Takes != nil {
		turn.Takes, turn.Hangs, sources.Takes = *stated.Takes, false, FromFlag
	}
	if stated.Waits != nil {
		turn.Waits = time.Duration(*stated.Waits * float64(turn.Takes))
	}
	if stated.Fails == nil || turn.Result.Failure != nil && turn.Result.Failure.Code == run.CodeExpression {
		return
	}
	sources.Ends = FromFlag
	switch fails := chance >= 1-*stated.Fails; {
	case fails && turn.Result.Failure == nil:
		turn.Result = drawn(true)
	case !fails && turn.Result.Failure != nil:
		turn.Result = drawn(false)
	}
}

// own reports whether a call is one of the flow itself, not of a sub-flow.
func (t *trial) own(call *run.Call) bool { return call.Flow == t.config.Flow.Name }
