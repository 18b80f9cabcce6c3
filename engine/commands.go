package engine

import (
	"context"
	"errors"
	"maps"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Deploy replaces the deployed flows by those of a set, and arms their schedules. The
// numbers of its limits are in force at once for all runs. A flow of the same name is
// replaced for new runs, and a flow that the set does not have is removed; open runs
// keep their flows either way.
func (e *Engine) Deploy(ctx context.Context, set *flows.Set) error {
	done := make(chan struct{}, 1)
	err := e.command(ctx, func() {
		e.exec.deploy(set, func() { done <- struct{}{} })
		deployed := maps.Clone(e.exec.flows)
		e.deployed.Store(&deployed)
	})
	if err != nil {
		return err
	}
	_, err = await(ctx, e, done)
	return err
}

// maxDeployed is how many flows have their schedules armed in one turn of the loop.
const maxDeployed = 100

// deploy replaces the deployed flows at once, and arms their schedules in pieces.
func (e *executor) deploy(set *flows.Set, done func()) {
	e.watchdog.Doing("deploying flows", "")
	e.schedules.undeploy(set)
	e.limits.deploy(set.Limits)
	e.chains.byFlow = set.Followers()
	clear(e.sets) // runs that are open hold their flows
	for _, f := range set.Flows {
		e.flows[f.Name] = f
		e.sets[f.DefinitionDigest] = set
	}
	left := set.Flows
	e.pieces = append(e.pieces, func() bool {
		n := min(maxDeployed, len(left))
		for _, f := range left[:n] {
			if e.flows[f.Name] == f { // and not of a later deployment
				e.schedules.deploySchedules(f)
			}
		}
		if left = left[n:]; len(left) > 0 {
			return false
		}
		e.schedules.advanceBackfills()
		done()
		return true
	})
	e.freed.send()
}

// Submit requests a run and returns its receipt once the run is durable. It returns a
// *run.RequestError for a request that cannot make a run, and a *BusyError while too
// many runs are open.
//
// A receipt decides the request's position: the same request makes no second run. An
// error does not; the caller decides the position with [Engine.Decide] once the
// message is stored elsewhere.
func (e *Engine) Submit(ctx context.Context, request run.Request) (run.Receipt, error) {
	return e.receive(ctx, e.exec.commits.afterCommit, e.submission(request))
}

// Begin is Submit for who waits for the end of the run: it returns before the run is durable.
// The caller names the run to nobody before [Engine.Wait] or [Engine.Sync] has returned
// without an error.
func (e *Engine) Begin(ctx context.Context, request run.Request) (run.Receipt, error) {
	return e.receive(ctx, func(f func()) { f() }, e.submission(request))
}

func (e *Engine) submission(request run.Request) func() ask {
	return func() ask {
		a := e.admit(request)
		return func(answer answerRequest) { answer(e.exec.submit(request, a)) }
	}
}

// Sync returns once everything is durable that was recorded before. An engine that was
// drained has left nothing.
func (e *Engine) Sync(ctx context.Context) error {
	synced := make(chan struct{}, 1)
	err := e.command(ctx, func() { e.exec.commits.afterCommit(func() { synced <- struct{}{} }) })
	if err == nil {
		_, err = await(ctx, e, synced)
	}
	if errors.Is(err, ErrStopped) && e.drained {
		return nil
	}
	return err
}

// SubmitBatch requests runs, one after the other, until one is refused, and returns
// the number of those before it once they are durable: an error is about the request
// that follows them. It is Submit for a source of many messages, at the price of one
// commit.
func (e *Engine) SubmitBatch(ctx context.Context, requests []run.Request) (decided int, err error) {
	for {
		n, err := e.submitBatch(ctx, requests[decided:])
		decided += n
		if !errors.Is(err, errRedeployed) {
			return decided, err
		}
	}
}

func (e *Engine) submitBatch(ctx context.Context, requests []run.Request) (decided int, err error) {
	type answer struct {
		decided int
		err     error
	}
	admissions := make([]*admission, len(requests))
	for i, request := range requests {
		admissions[i] = e.admit(request)
	}
	answers := make(chan answer, 1)
	err = e.command(ctx, func() {
		var a answer
		for i, request := range requests {
			if _, a.err = e.exec.submit(request, admissions[i]); a.err != nil {
				break
			}
			a.decided++
		}
		e.exec.commits.afterCommit(func() { answers <- a })
	})
	if err != nil {
		return 0, err
	}
	a, err := await(ctx, e, answers)
	if err != nil {
		return 0, err
	}
	return a.decided, a.err
}

// ask requests a run, on the loop, and calls answerRequest once everything is recorded.
type (
	ask           func(answer answerRequest)
	answerRequest func(run.Receipt, error)
)

// receive requests a run and returns its receipt when settled calls back. prepare admits the
// request, on this goroutine, and gives what the loop does with that. It is called again
// when the flow was deployed again in between.
func (e *Engine) receive(ctx context.Context, settled func(func()), prepare func() ask) (run.Receipt, error) {
	type answer struct {
		receipt run.Receipt
		err     error
	}
	for {
		ask, answers := prepare(), make(chan answer, 1)
		err := e.command(ctx, func() {
			ask(func(receipt run.Receipt, err error) {
				settled(func() { answers <- answer{receipt, err} })
			})
		})
		if err != nil {
			return run.Receipt{}, err
		}
		a, err := await(ctx, e, answers)
		if err != nil {
			return run.Receipt{}, err
		}
		if !errors.Is(a.err, errRedeployed) {
			return a.receipt, a.err
		}
	}
}

// Decide moves the watermark of a source of triggers past a request that was
// refused. It returns once that is durable.
func (e *Engine) Decide(ctx context.Context, position run.Position) error {
	answers := make(chan struct{}, 1)
	err := e.command(ctx, func() {
		if position.After(e.exec.shard.Watermarks[position.Source]) {
			e.exec.commits.record(e.exec.decidedEvent(position))
		}
		e.exec.commits.afterCommit(func() { answers <- struct{}{} })
	})
	if err != nil {
		return err
	}
	_, err = await(ctx, e, answers)
	return err
}

// Cancel stops a run: running attempts are canceled, and no other starts. It returns
// once that is durable; the run finishes soon after.
func (e *Engine) Cancel(ctx context.Context, id run.ID, reason string) error {
	answers := make(chan error, 1)
	err := e.command(ctx, func() {
		o := e.exec.open[id]
		if o == nil {
			answers <- run.ErrUnknown
			return
		}
		o.interrupt(func() {
			e.exec.cancel(o, canceled(reason))
			e.exec.commits.afterCommit(func() { answers <- nil })
		})
	})
	return e.awaitCancel(ctx, id, answers, err)
}

// CancelTask stops one task of a run: its running attempt is canceled, no other
// starts, and for the tasks downstream it did not succeed. It returns once that is
// durable.
func (e *Engine) CancelTask(ctx context.Context, id run.ID, ref run.TaskRef, reason string) error {
	answers := make(chan error, 1)
	err := e.command(ctx, func() {
		o := e.exec.open[id]
		if o == nil {
			answers <- run.ErrUnknown
			return
		}
		o.interrupt(func() {
			err := e.exec.cancelTask(o, ref, canceled(reason))
			e.exec.commits.afterCommit(func() { answers <- err })
		})
	})
	return e.awaitCancel(ctx, id, answers, err)
}

func canceled(reason string) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: reason}
}

// awaitCancel waits for the answer and distinguishes finished runs from unknown ones.
func (e *Engine) awaitCancel(ctx context.Context, id run.ID, answers <-chan error, err error) error {
	if err != nil {
		return err
	}
	answer, err := await(ctx, e, answers)
	if err != nil {
		return err
	}
	if errors.Is(answer, run.ErrUnknown) {
		if _, err := e.finishedRecord(ctx, id); err != nil {
			return err
		}
		return ErrFinished
	}
	return answer
}

// Watermark is the last position of a source of triggers that has been decided,
// the zero value before the first. Its time is the latest of all decided ones.
func (e *Engine) Watermark(ctx context.Context, source string) (run.Position, error) {
	answers := make(chan run.Position, 1)
	err := e.command(ctx, func() {
		decided := e.exec.shard.Watermarks[source]
		e.exec.commits.afterCommit(func() { answers <- decided })
	})
	if err != nil {
		return run.Position{}, err
	}
	return await(ctx, e, answers)
}

// PauseHost stops the start of attempts until ResumeHost, also across restarts. Attempts
// under way end, requests are accepted and schedules fire: their runs wait. It returns the
// pause once that is durable; of a host that is paused already, the first one, and began is
// false.
func (e *Engine) PauseHost(ctx context.Context, reason string) (pause run.Pause, began bool, err error) {
	err = e.durably(ctx, func() error {
		if e.exec.shard.Pause == nil {
			began = true
			if err := e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: &run.HostPaused{Reason: reason}}); err != nil {
				return err
			}
		}
		pause = *e.exec.shard.Pause
		return nil
	})
	return pause, began, err
}

// ResumeHost lets attempts start again. It returns the pause that has ended once that is
// durable, nil if the host was not paused.
func (e *Engine) ResumeHost(ctx context.Context) (ended *run.Pause, err error) {
	err = e.durably(ctx, func() error {
		if ended = e.exec.shard.Pause; ended == nil {
			return nil
		}
		return e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: &run.HostResumed{}})
	})
	return ended, err
}
