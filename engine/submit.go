package engine

import (
	"encoding/json"
	"errors"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// checkRequest refuses a request after too many hops, or with params that are not JSON,
// are nested too deeply or have numbers that are too long.
func checkRequest(request run.Request) error {
	if _, err := request.Trigger.Hops(); err != nil {
		return err
	}
	return checkParams(request.Params)
}

func checkParams(params map[string]json.RawMessage) error {
	for name, value := range params {
		if err := run.CheckPayload(value); err != nil {
			return run.Requestf(run.RequestParams, "param %s is refused: %s", name, err)
		}
	}
	return nil
}

// admission is what a flow makes of a request.
type admission struct {
	flow *flows.Flow // nil: there was none of that name
	*flows.Admission
	err error
}

// admit lets a deployed flow admit a request, on the goroutine of whoever requests it: that
// takes nothing but the flow.
func (e *Engine) admit(request run.Request) *admission {
	a := &admission{flow: e.deployedFlow(request.Flow)}
	if a.err = checkRequest(request); a.err == nil && a.flow != nil {
		a.Admission, a.err = a.flow.Admit(request)
	}
	return a
}

// deployedFlow is the flow of a name that is deployed now, nil for none.
func (e *Engine) deployedFlow(name string) *flows.Flow {
	if deployed := e.deployed.Load(); deployed != nil {
		return (*deployed)[name]
	}
	return nil
}

// errRedeployed is for a request that a flow has admitted which is deployed no longer: it
// is admitted again.
var errRedeployed = errors.New("the flow was deployed again meanwhile")

// submit decides an admitted request. Whatever it records is durable before the answer is
// sent.
func (e *executor) submit(request run.Request, a *admission) (run.Receipt, error) {
	position := request.Position
	if position.Source != "" && !position.After(e.shard.Watermarks[position.Source]) {
		return run.Receipt{}, nil
	}
	if first, known := e.shard.Keys.Run(request.Flow, request.Key, e.clock.now()); known {
		e.decideIf(position)
		return run.Receipt{Run: first, Accepted: true, Repeated: true}, nil
	}
	f := e.flows[request.Flow]
	if f != a.flow {
		return run.Receipt{}, errRedeployed
	}
	if err := e.refusal(); err != nil {
		return run.Receipt{}, err
	}
	if f == nil && a.err == nil {
		a.err = run.Requestf(run.RequestUnknownFlow, "there is no flow %q here", request.Flow)
	}
	if a.err != nil {
		return run.Receipt{}, a.err
	}
	var also []run.EventData
	if position.Source != "" {
		also = append(also, &run.Decided{Position: position})
	}
	receipt, err := e.accept(request, a, also...)
	if err == nil && !receipt.Accepted {
		e.decideIf(position)
	}
	return receipt, err
}

// refusal is the reason why the engine accepts no new run now, nil if it does.
func (e *executor) refusal() error {
	switch {
	case e.draining:
		return ErrDraining
	case len(e.open) >= e.config.OpenRuns:
		return &BusyError{Limit: e.config.OpenRuns}
	}
	return nil
}

// decideIf moves the watermark of a request that has a position.
func (e *executor) decideIf(position run.Position) {
	if position.Source != "" {
		e.commits.record(e.decidedEvent(position))
	}
}

func (e *executor) decidedEvent(position run.Position) run.Event {
	return run.Event{At: e.clock.now(), Data: &run.Decided{Position: position}}
}

// accept makes the requested run, unless the trigger's filter has refused it. The
// additional events are recorded together with it.
func (e *executor) accept(request run.Request, a *admission, also ...run.EventData) (run.Receipt, error) {
	if a.err != nil || !a.Accepted {
		return run.Receipt{}, a.err
	}
	if e.overLimit(a.flow, request.Trigger.Kind == run.TriggerBackfill, a.Concurrency) {
		return run.Receipt{Limited: true}, nil
	}
	return e.openNew(a.flow, &run.Submitted{
		Flow: a.flow.Name, Definition: a.flow.DefinitionDigest, Trigger: a.Trigger,
		Params: a.Params, Concurrency: a.Concurrency, Key: request.Key,
	}, also...)
}

// openNew records a new run with additional events, and opens it.
func (e *executor) openNew(f *flows.Flow, submitted *run.Submitted, also ...run.EventData) (run.Receipt, error) {
	if err := fits(submitted.Trigger.Payload); err != nil {
		return run.Receipt{}, tooLarge("the payload", err)
	}
	if err := e.define(f.DefinitionDigest, f.Definition); err != nil {
		return run.Receipt{}, err
	}
	at := e.clock.now()
	id := e.newID(at)
	events := make([]run.Event, 0, 1+len(also))
	events = append(events, run.Event{Run: id, At: at, Data: submitted})
	for _, data := range also {
		events = append(events, run.Event{Run: id, At: at, Data: data})
	}
	if err := e.recordNew(events); err != nil {
		return run.Receipt{}, tooLarge("the request", err)
	}
	e.used[f.DefinitionDigest] = at
	e.enter(e.newOpenRun(e.shard.Runs[id], f))
	return run.Receipt{Run: id, Accepted: true}, nil
}

// maxTogether is the number of events from which one commit is not tried.
const maxTogether = 4096

// recordNew records a run's Submitted with the events that belong to it, in one commit
// if they fit. What a run carries over from an earlier one may be too large for that,
// as with the items of a large fan-out: Submitted then states how many events belong
// to it, and they are in as many commits as needed. The receipt waits
// for the last. If the process ends in between, nobody has received a receipt.
//
// With an error there is no such run, or none that was accepted.
func (e *executor) recordNew(events []run.Event) error {
	submitted := events[0].Data.(*run.Submitted)
	if len(events) <= maxTogether || submitted.RetryOf == "" {
		err := e.commits.record(events...)
		if size := (*SizeError)(nil); submitted.RetryOf == "" || !errors.As(err, &size) {
			return err
		}
	}
	submitted.Awaits = len(events) - 1
	for i, event := range events {
		if err := e.commits.record(event); err != nil {
			if i > 0 && e.fault == nil {
				e.cancelIncomplete(e.shard.Runs[event.Run], "it carries over more than the journal accepts")
			}
			return err
		}
	}
	return nil
}

// maxPiece is how many events of one large run are recorded in one turn of the loop.
const maxPiece = 500

// openInPieces records a new run that carries over very much, in several turns of the loop,
// and opens it.
func (e *executor) openInPieces(f *flows.Flow, submitted *run.Submitted, also []run.EventData, answer answerRequest) {
	at := e.clock.now()
	id := e.newID(at)
	submitted.Awaits = len(also)
	err := tooLarge("the payload", fits(submitted.Trigger.Payload))
	if err == nil {
		err = e.define(f.DefinitionDigest, f.Definition)
	}
	if err == nil {
		err = tooLarge("the request", e.commits.record(run.Event{Run: id, At: at, Data: submitted}))
	}
	if err != nil {
		answer(run.Receipt{}, err)
		return
	}
	e.pieces = append(e.pieces, func() (done bool) {
		if len(also) == 0 {
			e.used[f.DefinitionDigest] = at
			o := e.newOpenRun(e.shard.Runs[id], f)
			e.evaluations.evaluate(o, o.decodeItems, func() { e.enter(o) }, nil)
			answer(run.Receipt{Run: id, Accepted: true}, nil)
			return true
		}
		for _, data := range also[:min(maxPiece, len(also))] {
			if err := e.commits.record(run.Event{Run: id, At: at, Data: data}); err != nil {
				if e.fault == nil {
					e.cancelIncomplete(e.shard.Runs[id], "it carries over more than the journal accepts")
				}
				answer(run.Receipt{}, tooLarge("the request", err))
				return true
			}
		}
		also = also[min(maxPiece, len(also)):]
		return false
	})
	e.freed.send()
}

// cancelIncomplete ends a run that was not accepted.
func (e *executor) cancelIncomplete(r *run.Run, why string) {
	e.log.Warn("a run was not accepted", "run", r.ID, "flow", r.Flow, "reason", why)
	failure := canceled(why)
	for _, t := range r.Tasks {
		if !t.State.Done() {
			e.commits.record(run.Event{Run: r.ID, At: e.clock.now(), Data: &run.TaskEnded{TaskRef: t.TaskRef, State: run.Canceled, Failure: failure}})
		}
	}
	e.commits.record(run.Event{Run: r.ID, At: e.clock.now(), Data: &run.Finished{State: run.Canceled, Failure: failure}})
	e.shard.Forget(r.ID)
}

// define records a definition before the first run that refers to it.
func (e *executor) define(digest string, definition *run.Definition) error {
	if e.shard.Definitions[digest] != nil {
		return nil
	}
	err := e.commits.record(run.Event{At: e.clock.now(), Data: &run.Defined{Definition: definition}})
	return tooLarge("the directory of the flow's files", err)
}

func tooLarge(what string, err error) error {
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return run.Requestf(run.RequestSize, "%s takes %d bytes and the journal accepts at most %d", what, size.Size, size.Limit)
	}
	return err
}
