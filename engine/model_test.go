package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

var (
	modelSeeds = flag.Uint64("model.seeds", 45, "how many worlds the model test makes")
	modelFirst = flag.Uint64("model.first", 0, "seed of the first one")
)

// world is what is left when a process ends, and those outside who ask for runs:
// what they were answered must stay true.
type world struct {
	t      *testing.T
	diary  diary
	seed   uint64
	rng    *rand.Rand // of the goroutine that makes lives
	plans  []*setPlan
	ledger *ledger
	shelf  *checkedSnapshots
	vault  *checkedBlobs
	told   []*checkingObserver

	mu     sync.Mutex
	engine *Engine       // that takes requests; nil between lives
	next   chan struct{} // closed when there is another engine, or none
	over   bool

	asked   map[string]int               // requests that may have made a run, by tag
	wanted  map[string]bool              // tags of which exactly one run is to be made
	keys    map[string]run.ID            // the run that a key was answered with
	runs    []run.ID                     // accepted
	stopped map[run.ID]bool              // whose cancel was confirmed
	ended   map[run.ID]map[string]string // the payload with which a wait was said to have ended
	remade  map[run.ID]againPlan         // how a run was made again
	perhaps map[run.ID][]againPlan       // how one was asked to be made again, without an answer
	clients sync.WaitGroup
}

// The engine against a model: random flows, guests that go wrong, requests,
// cancellations and retries, over several lives of the process, each of which
// ends at any deed. Whatever happens, the state in memory is that of the journal
// and of the snapshots, everything accepted is finished in the way that the
// language says, and whoever follows sees each event once and in order.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := *modelFirst; seed < *modelFirst+*modelSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := &world{t: t, seed: seed, rng: rng}
			for _, module := range []string{"v1.wasm", "v2.wasm"} {
				w.plans = append(w.plans, randomSet(t, rng, module))
			}
			synctest.Test(t, func(t *testing.T) {
				w.t = t
				w.live()
				if t.Failed() {
					t.Logf("what happened:\n%s\nthe flows:\n%s\n%s", &w.diary, w.plans[0].hcl(), w.plans[1].hcl())
				}
			})
		})
	}
}

// live makes one life after the other; the last one ends when all is done.
func (w *world) live() {
	w.vault = &checkedBlobs{t: w.t, diary: &w.diary, need: w.needs}
	w.ledger = newLedger(w.t, &w.diary, w.vault)
	w.shelf = &checkedSnapshots{t: w.t, diary: &w.diary, ledger: w.ledger}
	w.told = []*checkingObserver{{world: w, records: map[run.ID]*run.Record{}}, {world: w, lazy: true, rng: rand.New(rand.NewPCG(w.seed, 2))}}
	w.next = make(chan struct{})
	w.asked, w.wanted, w.keys, w.stopped = map[string]int{}, map[string]bool{}, map[string]run.ID{}, map[run.ID]bool{}
	w.ended, w.remade, w.perhaps = map[run.ID]map[string]string{}, map[run.ID]againPlan{}, map[run.ID][]againPlan{}
	w.ask()
	damage := w.rng.IntN(12)
	for i := range w.rng.IntN(4) {
		w.life()
		if i == damage {
			w.shelf.damage(w.rng)
		}
		time.Sleep(pick(w.rng, 0, time.Second, 2*time.Minute))
	}
	w.lastLife()
	w.judge()
}

// life starts a process and ends it, hard at some deed or some time, or softly.
func (w *world) life() {
	deeds, done := 0, chance(w.rng, 2)
	if chance(w.rng, 2) {
		deeds = 1 + w.rng.IntN(100)
	}
	e, kill, ended := w.start(deeds, done, chance(w.rng, 3))
	defer kill()
	limit := time.After(time.Duration(w.rng.IntN(60_000)) * time.Millisecond)
	if deeds > 0 {
		limit = time.After(5 * time.Minute)
	}
	soft := chance(w.rng, 4)
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			w.t.Errorf("the engine ended by itself: %v", err)
		}
	case <-limit:
		if soft {
			e.Drain()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				w.t.Errorf("a soft stop ends with: %v", err)
			}
			break
		}
		kill()
		<-ended
	}
	w.gone()
	for _, o := range w.told {
		o.restart()
	}
}

// start boots an engine on what is there.
func (w *world) start(deeds int, done, moody bool) (*Engine, context.CancelFunc, <-chan error) {
	ctx, kill := context.WithCancel(context.Background())
	f := newFuse(deeds, done, kill)
	if moody {
		f.moody = w.mood()
	}
	config := Config{
		Journal: mortalJournal{w.ledger, f}, Snapshots: mortalStore{w.shelf, f}, Blobs: mortalStore{w.vault, f},
		Invoker: w, Restore: restore, History: w.told[0],
		Workers: 1 + w.rng.IntN(6), OpenRuns: pick(w.rng, 3, 100), SnapshotEvents: 1 + w.rng.IntN(50),
		CommitHold: pick(w.rng, 0, time.Millisecond, time.Minute),
	}
	for _, o := range w.told {
		config.Observers = append(config.Observers, Observation{Observer: mortalObserver{o, f}, CatchUp: true, Seen: o.seen()})
	}
	e, ended := New(config), make(chan error, 1)
	w.slow(e)
	w.diary.note("a process begins at revision %d with the observers at %v and %v; its fuse is %d, %t", w.ledger.last(), config.Observers[0].Seen, config.Observers[1].Seen, deeds, done)
	go func() {
		err := e.Run(ctx)
		w.diary.note("the process ends at revision %d: %v", w.ledger.last(), err)
		kill()
		ended <- err
	}()
	if e.Deploy(ctx, pick(w.rng, w.plans...).set) == nil {
		w.here(e)
		w.clients.Go(func() { w.watchOver(ctx, e) })
	}
	return e, kill, ended
}

// slow lets some engines evaluate nearly everything beside the loop, each for a while, and
// changes their bounds as they work.
func (w *world) slow(e *Engine) {
	rng := rand.New(rand.NewPCG(w.seed, w.rng.Uint64()))
	if chance(rng, 3) {
		e.exec.evaluations.trial = 1
		var mu sync.Mutex
		e.exec.evaluations.around = func(work func()) {
			mu.Lock()
			takes := pick(rng, 0, 0, time.Millisecond, 700*time.Millisecond, 5*time.Second)
			mu.Unlock()
			time.Sleep(takes)
			work()
		}
	}
	if chance(rng, 4) {
		e.Tune(Tuning{Workers: rng.IntN(4) - 1, InFlight: 1 + rng.IntN(4)})
		tuned := rand.New(rand.NewPCG(w.seed, rng.Uint64()))
		w.clients.Go(func() {
			time.Sleep(time.Duration(tuned.IntN(20)) * time.Second)
			e.Tune(Tuning{Workers: 1 + tuned.IntN(6), InFlight: 1 + tuned.IntN(6)})
		})
	}
}

// mood fails once in a while.
func (w *world) mood() func() bool {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(w.seed, w.rng.Uint64()))
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return chance(rng, 12)
	}
}

func (w *world) here(e *Engine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine = e
	close(w.next)
	w.next = make(chan struct{})
}

func (w *world) gone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine = nil
}

// present waits for an engine. There is none any more once the world is over.
func (w *world) present() *Engine {
	for {
		w.mu.Lock()
		e, next, over := w.engine, w.next, w.over
		w.mu.Unlock()
		if e != nil || over {
			return e
		}
		<-next
	}
}

// Invoke lets the guest of the flow's version work.
func (w *world) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	for _, p := range w.plans {
		if t := p.flow(call.Flow).task(call.Task); p.digest() == call.Module && t != nil {
			return t.item(call.Key).invoke(ctx, call)
		}
	}
	return run.Result{}, fmt.Errorf("no task %s", call.Task)
}

// needs reports what refers to a blob that is about to be removed.
func (w *world) needs(name string) error {
	return errors.Join(w.shelf.needs(name), w.ledger.needs(name, w.shelf.oldest()))
}

// watchOver compares memory and journal at quiet and at busy moments.
func (w *world) watchOver(ctx context.Context, e *Engine) {
	rng := rand.New(rand.NewPCG(w.seed, 3))
	for ctx.Err() == nil {
		e.command(ctx, func() { e.exec.commits.afterCommit(func() { w.compare(e) }) })
		select {
		case <-time.After(time.Duration(rng.IntN(3000)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// compare runs on the loop, when no commit is on its way to the journal.
func (w *world) compare(e *Engine) {
	shard := w.ledger.copyAt(e.exec.commits.revision)
	for _, b := range e.exec.commits.pending {
		commit, err := wire.DecodeCommit(b.commit.Seal(0))
		if err != nil {
			w.t.Errorf("a commit to come: %v", err)
			return
		}
		for _, event := range commit.Events {
			if err := apply(shard, event); err != nil {
				w.t.Errorf("a commit to come: %v", err)
			}
		}
	}
	if !bytes.Equal(shardBytes(w.t, e.exec.shard), shardBytes(w.t, shard)) {
		w.t.Errorf("at revision %d memory and journal differ", e.exec.commits.revision)
	}
	if err := e.consistent(); err != nil {
		w.t.Errorf("at revision %d: %v", e.exec.commits.revision, err)
	}
}

// consistent checks what the loop keeps beside the recorded state.
func (e *Engine) consistent() error {
	under, beginning, ending, held := 0, 0, 0, map[runLimitKey]int{}
	for id, o := range e.exec.open {
		if e.exec.shard.Runs[id] != o.run || o.run.State.Done() {
			return fmt.Errorf("run %s is %s and still open", id, o.run.State)
		}
		if e.exec.shard.Definitions[o.run.Definition] == nil {
			return fmt.Errorf("the definition of run %s is forgotten", id)
		}
		under += len(o.attempts)
		for _, b := range o.beginning {
			if b.task.spec.Child == nil {
				beginning++
			}
		}
		ending += len(o.ending)
		for _, l := range o.runLimits()[:o.held] {
			held[l.key]++
		}
		if err := o.phase.consistent(o); err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
	}
	for key, g := range e.exec.runLimits.byKey {
		if g.started != held[key] {
			return fmt.Errorf("%d slots of %v are taken and %d runs hold one", g.started, key, held[key])
		}
	}
	for _, o := range e.exec.open {
		if err := errors.Join(o.waitsAgree(), e.familiesAgree(o), reasonsAgree(e.exec, o)); err != nil {
			return err
		}
	}
	if err := e.limitsAgree(); err != nil {
		return err
	}
	running := e.exec.runnable.Running()
	computing, waiting := e.exec.places.Count()
	if under+beginning+ending != running || under != e.exec.inFlight || under+beginning != computing+waiting || len(e.exec.shard.Runs) != len(e.exec.open) {
		return fmt.Errorf("%d attempts are under way, %d begin and %d end, %d are counted as running, %d are in flight, %d compute and %d wait, %d runs are open, %d are kept",
			under, beginning, ending, running, e.exec.inFlight, computing, waiting, len(e.exec.open), len(e.exec.shard.Runs))
	}
	return nil
}

// consistent checks what is kept of groups and fan-outs.
func (p *phase) consistent(o *openRun) error {
	for node, n := range p.nodes {
		if kept := p.states[node]; n.End && kept != nil && !reflect.DeepEqual(kept, o.groupState(n.Group)) {
			return fmt.Errorf("group %s was %+v, and is %+v", n.Group.Name, kept, o.groupState(n.Group))
		}
	}
	for g, s := range p.groupLimiters {
		used := 0
		for ref := range p.holding {
			if slices.ContainsFunc(g.Leaves(), func(t *flows.Task) bool { return t.Name == ref.Task }) {
				used++
			}
		}
		if used != s.used || used > g.MaxParallel || used < g.MaxParallel && len(s.waiting) > 0 {
			return fmt.Errorf("%d slots of %d of group %s are taken, %d are held, %d wait", s.used, g.MaxParallel, g.Name, used, len(s.waiting))
		}
	}
	for node, f := range p.fans {
		busy := 0
		for _, i := range f.active {
			if i.busy {
				busy++
			}
		}
		if state := p.states[node]; busy != f.busy || state.State.Done() != (len(f.active) == 0) || state.Open() > len(f.active) {
			return fmt.Errorf("task %s is %s: %d items are going, %d of them busy (%d are counted), %d open", state.Task, state.State, len(f.active), busy, f.busy, state.Open())
		}
	}
	return nil
}

// empty checks that nothing is left of finished runs.
func (e *Engine) empty() error {
	if len(e.exec.open)+len(e.exec.runLimits.byKey)+e.exec.runnable.Len()+len(e.exec.children.starts)+len(e.exec.starting)+len(e.exec.watchers.byRun)+e.exec.commits.unsaved+len(e.exec.messages.begun) != 0 || !e.exec.runnable.Empty() || e.exec.clock.timers.Len() != 1 {
		return fmt.Errorf("left are %d runs, %d gates, %d tasks, %d running, %d starting, %d watchers, %d bytes, %d timers besides the tick",
			len(e.exec.open), len(e.exec.runLimits.byKey), e.exec.runnable.Len(), e.exec.runnable.Running(), len(e.exec.starting), len(e.exec.watchers.byRun), e.exec.commits.unsaved, e.exec.clock.timers.Len()-1)
	}
	return nil
}

// lastLife lets everything come to its end.
func (w *world) lastLife() {
	e, kill, ended := w.start(0, true, false)
	defer kill()
	ctx, stop := context.WithTimeout(context.Background(), 24*time.Hour)
	defer stop()
	last := &client{world: w, rng: rand.New(rand.NewPCG(w.seed, 4)), name: "last"}
	for range 1 + w.rng.IntN(3) { // runs of a world that has come to rest are made again
		if !w.calm(ctx, ended) {
			w.finish()
			return
		}
		last.own = w.accepted()
		for range 3 {
			last.again()
		}
	}
	w.calm(ctx, ended)
	if ctx.Err() != nil {
		w.t.Errorf("after a day %d runs are open, and of %d messages the run is not known", w.ledger.open(), len(w.wanted))
	}
	w.sweep(ctx, e)
	w.finish()
	e.command(ctx, func() {
		if err := e.empty(); err != nil {
			w.t.Error(err)
		}
	})
	e.Drain()
	if err := <-ended; err != nil {
		w.t.Errorf("the last stop ends with: %v", err)
	}
	w.clients.Wait()
}

// calm waits until nothing is going on any more. It is false when the process has
// ended.
func (w *world) calm(ctx context.Context, ended <-chan error) bool {
	for quiet := false; !quiet && ctx.Err() == nil; {
		time.Sleep(time.Minute)
		w.mu.Lock()
		quiet = len(w.wanted) == 0 && w.ledger.open() == 0 && w.told[1].seen().Revision == w.ledger.last()
		w.mu.Unlock()
		select {
		case err := <-ended:
			w.t.Errorf("the engine ended by itself: %v", err)
			return false
		default:
		}
	}
	return true
}

// accepted are the runs that were accepted so far.
func (w *world) accepted() []run.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.runs)
}

func (w *world) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.engine = true, nil
	close(w.next)
	w.next = make(chan struct{})
}

// sweep lets enough snapshots be made that nothing refers to large values any
// more.
func (w *world) sweep(ctx context.Context, e *Engine) {
	for i := range 8 { // observers that are late hold up what is removed
		if err := e.Decide(ctx, run.Position{Source: "end", Seq: uint64(i + 1)}); err != nil {
			w.t.Error(err)
		}
		time.Sleep(3*time.Minute + time.Second)
	}
	if names, _ := w.vault.List(ctx); len(names) > 0 {
		w.t.Errorf("%d large values are kept that nothing refers to", len(names))
	}
	if names, _ := w.shelf.List(ctx); len(names) > 2 {
		w.t.Errorf("%d snapshots are kept", len(names))
	}
}

// ask lets those outside begin to ask for runs.
func (w *world) ask() {
	for i := range 1 + w.rng.IntN(3) {
		w.clients.Go(func() {
			(&client{world: w, rng: rand.New(rand.NewPCG(w.seed, 10+uint64(i))), name: fmt.Sprint("c", i)}).work()
		})
	}
}

// judge looks at what the journal tells at the end.
func (w *world) judge() {
	events := map[run.ID][]run.Event{}
	places := map[run.ID][]place{}
	var order []run.ID
	for revision := range w.ledger.last() {
		for i, e := range w.ledger.at(revision + 1) {
			if e.Run == "" {
				continue
			}
			if events[e.Run] == nil {
				order = append(order, e.Run)
			}
			events[e.Run] = append(events[e.Run], e)
			places[e.Run] = append(places[e.Run], place{revision + 1, i})
		}
	}
	stories := map[run.ID]*story{}
	made := map[string]int{}
	for _, id := range order {
		s := newStory(id, events[id], w.vault)
		s.places, s.all, s.plan, stories[id] = places[id], stories, w.planOf(s), s
		if s.submitted.RetryOf == "" && s.submitted.Parent == nil {
			made[s.payload().Tag]++
		}
	}
	for _, id := range order {
		s := stories[id]
		if err := w.checkAgain(s); err != nil {
			w.t.Errorf("run %s: %v\n%s", id, err, s)
			for old := s.old; old != nil; old = old.old {
				w.t.Logf("made again from run %s:\n%s", old.id, old)
			}
		}
	}
	w.judgeAnswers(stories, made)
	w.judgeWaits(stories)
	w.judgeSlots()
	w.judgeLimits()
	w.judgeChildren(stories)
	for _, o := range w.told {
		if last := w.ledger.last(); o.seen() != (Place{last, len(w.ledger.at(last)) - 1}) {
			w.t.Errorf("an observer was told up to %v, and the journal goes on to %d", o.seen(), last)
		}
	}
}

// planOf is the plan of the version of the flow that a run was accepted with.
func (w *world) planOf(s *story) *flowPlan {
	for _, p := range w.plans {
		if f := p.set.Flow(s.submitted.Flow); f != nil && f.DefinitionDigest == s.submitted.Definition {
			return p.flow(f.Name)
		}
	}
	return nil
}

// begunFinally reports whether something has happened to a task of finally: then a
// cancellation is for these tasks alone.
func (s *story) begunFinally(f *flowPlan) bool {
	return f != nil && slices.ContainsFunc(f.part(flows.PartFinally).tasks, func(t *taskPlan) bool { return s.task(t.name) != nil })
}

// judgeAnswers compares what those outside were answered with what was recorded.
func (w *world) judgeAnswers(stories map[run.ID]*story, made map[string]int) {
	for _, id := range w.runs {
		if stories[id] == nil {
			w.t.Errorf("run %s was accepted and is not recorded", id)
		}
	}
	for id := range w.stopped {
		if s := stories[id]; s != nil && s.run.Cancel == nil && !s.begunFinally(s.plan) {
			w.t.Errorf("run %s is %s, and its cancel was confirmed\n%s", id, s.run.State, s)
		}
	}
	for tag, n := range made {
		if once := strings.HasPrefix(tag, "once-"); n > w.asked[tag] || once && n != 1 {
			w.t.Errorf("of request %s there are %d runs, and it was made %d times", tag, n, w.asked[tag])
		}
	}
}

// judgeSlots follows how many runs were under way at once, and who came first.
func (w *world) judgeSlots() {
	shard := run.NewShard()
	under := map[runLimitKey][]run.ID{}
	for revision := range w.ledger.last() {
		for _, e := range w.ledger.at(revision + 1) {
			shard.Apply(e)
			r := shard.Runs[e.Run]
			if r == nil || w.limitOf(r) == 0 {
				continue
			}
			key := runLimitKey{flow: r.Flow + r.Definition, key: r.Concurrency}
			switch e.Data.(type) {
			case *run.Started:
				under[key] = append(under[key], r.ID)
				if len(under[key]) > w.limitOf(r) {
					w.t.Errorf("revision %d: %d runs of key %q are under way at once, the limit is %d", revision+1, len(under[key]), r.Concurrency, w.limitOf(r))
				}
				for _, other := range shard.Runs {
					if other.State == run.Pending && other.Cancel == nil && other.Flow == r.Flow && other.Definition == r.Definition && other.Concurrency == r.Concurrency && other.CreatedAt.Before(r.CreatedAt) {
						w.t.Errorf("revision %d: run %s starts before %s, which came earlier", revision+1, r.ID, other.ID)
					}
				}
			case *run.Finished:
				under[key] = slices.DeleteFunc(under[key], func(id run.ID) bool { return id == r.ID })
			}
		}
	}
}

func (w *world) limitOf(r *run.Run) int {
	for _, p := range w.plans {
		if f := p.set.Flow(r.Flow); f != nil && f.DefinitionDigest == r.Definition && f.Concurrency != nil {
			return f.Concurrency.Limit
		}
	}
	return 0
}

// copyAt gives the state at a revision, to be changed.
func (l *ledger) copyAt(revision uint64) *run.Shard {
	shard, _, err := wire.DecodeSnapshot(l.stateAt(revision))
	if err != nil {
		l.t.Errorf("revision %d: %v", revision, err)
		return run.NewShard()
	}
	return shard
}

// witness is an observer that checks that it misses nothing. A lazy one takes its
// time and keeps what it received only when it is asked to: a crash makes it
// forget the rest.
type checkingObserver struct {
	*world
	lazy bool
	rng  *rand.Rand

	mu      sync.Mutex
	last    Place
	kept    Place
	records map[run.ID]*run.Record // nil for none
}

func (o *checkingObserver) Committed(_ context.Context, n run.Notice) error {
	if o.lazy && chance(o.rng, 50) {
		time.Sleep(pick(o.rng, time.Millisecond, time.Second, 90*time.Second))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := Place{n.Revision, n.Index}
	next := Place{o.last.Revision, o.last.Index + 1}
	if next.Index >= len(o.ledger.at(o.last.Revision)) {
		next = Place{o.last.Revision + 1, 0}
	}
	if at != next {
		o.t.Errorf("an observer (lazy: %t) is told of %v after %v", o.lazy, at, o.last)
	}
	o.last = at
	if !o.lazy || chance(o.rng, 10) {
		o.kept = at
	}
	o.compare(n)
	if n.Record != nil && o.records != nil {
		o.records[n.Record.Run] = n.Record
	}
	return nil
}

// compare checks that the notice says what the journal holds.
func (o *checkingObserver) compare(n run.Notice) {
	events := o.ledger.at(n.Revision)
	if n.Index >= len(events) {
		o.t.Errorf("an observer is told of event %d of revision %d, which has %d", n.Index, n.Revision, len(events))
		return
	}
	var stored, told wire.Commit
	if err := errors.Join(stored.Add(events[n.Index]), told.Add(n.Event)); err != nil || !bytes.Equal(stored.Seal(0), told.Seal(0)) {
		o.t.Errorf("an observer is told of another event at %d.%d than the journal holds: %v", n.Revision, n.Index, err)
	}
	n.Event.Payloads(func(p *json.RawMessage) {
		if _, apart := run.BlobName(*p); apart {
			o.t.Errorf("an observer is told of a large value's name at %d.%d", n.Revision, n.Index)
		}
	})
	if _, done := n.Event.Data.(*run.Finished); done != (n.Record != nil) {
		o.t.Errorf("notice %d.%d of %s has the record %v", n.Revision, n.Index, n.Event.Data.Kind(), n.Record)
	}
	if n.Record != nil {
		if _, err := run.EncodeJSON(n.Record); err != nil || n.Flow != n.Record.Flow {
			o.t.Errorf("the record of run %s of flow %q: %v", n.Record.Run, n.Flow, err)
		}
	}
}

func (o *checkingObserver) Flush(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = o.last
	return nil
}

// restart forgets what was not kept.
func (o *checkingObserver) restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = o.kept
}

func (o *checkingObserver) seen() Place {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// Get and List make a history of it.
func (o *checkingObserver) Get(_ context.Context, id run.ID) (*run.Record, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.records[id]; r != nil {
		return r, nil
	}
	return nil, run.ErrUnknown
}

func (o *checkingObserver) List(context.Context, run.Query) (run.Page, error) { return run.Page{}, nil }
