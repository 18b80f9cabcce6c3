package engine

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// openRun is a run that is not finished, with what the executor keeps beside its
// recorded state. All of it can be rebuilt from that state.
type openRun struct {
	run            *run.Run
	clock          *clock
	flow           *flows.Flow
	scope          *flows.Scope // nil until the run starts
	phase          phase
	attempts       []*attempt                 // running
	retries        map[run.TaskRef]*countdown // due later; nil before the first
	waits          map[run.TaskRef]*waiting   // open; nil before the first
	deadline       countdown                  // of the main tasks, then of those of finally
	parentDeadline countdown                  // from the timeout of the task whose attempt this run is
	resumed        bool                       // it had started before a restart
	backfill       bool                       // a backfill has requested it, or the run that it belongs to
	output         json.RawMessage            // once the main tasks have succeeded
	failure        *run.Failure               // why the run will not succeed, from the parts that are over
	shown          time.Time                  // when its record was built last
	showing        bool                       // a timer is armed that shows it again
	held           int                        // how many of its run limits it has slots of
	evaluating     *evaluation                // that is out, see evaluate.go; nil for none
	inbox          []func()                   // what waits for its end
	beginning      []beginning                // tasks whose next attempt starts as soon as its input is known
	ending         []task                     // with an attempt whose end is still decided
	completion     *completion

	askedFor  run.TaskRef                         // the task that was requested by name; zero for most
	items     map[string][]run.Item               // of fan-outs that continue, by task, until they do
	continued map[run.TaskRef]*run.ContinuedChild // what the runs of sub-flows carry over; nil for most

	schedule *schedule     // the schedule that has made it; nil for none
	overlap  flows.Overlap // of that schedule, as of the run's definition
	waiters  []task        // of later runs of the schedule, which wait for tasks of this one
}

// phase is the part of a flow that is being executed: the main tasks, then the tasks
// of the hooks that their end requires.
type phase struct {
	part          flows.Part
	tasks         []*flows.Task
	nodes         []flows.Node   // those of the tasks first
	states        []*run.TaskRun // by node: of tasks nil before something has happened, of groups computed
	frontier      *dag.Frontier
	ready         []int                          // nodes that the frontier has handed out and nobody has visited
	fans          map[int]*fan                   // by node
	groupLimiters map[*flows.Group]*groupLimiter // of groups with a bound
	holding       map[run.TaskRef]bool           // tasks that hold slots
}

func newPhase(s *flows.Section) phase {
	return phase{part: s.Part, tasks: s.Tasks, nodes: s.Nodes, states: make([]*run.TaskRun, len(s.Nodes)), frontier: s.Graph.Frontier()}
}

// next is the next node to visit.
func (p *phase) next() (node int, ok bool) {
	if len(p.ready) == 0 {
		p.ready = p.frontier.Ready()
	}
	if len(p.ready) == 0 {
		return 0, false
	}
	node, p.ready = p.ready[0], p.ready[1:]
	return node, true
}

// beginning is a task that is in no queue any more, and has no attempt yet.
type beginning struct {
	task  task
	place fairq.Place // of a sub-flow none: it needs none
}

// begins reports whether a task is beginning.
func (t task) begins() bool { return t.indexOfBeginning() >= 0 }

func (t task) indexOfBeginning() int {
	return slices.IndexFunc(t.beginning, func(b beginning) bool { return b.task == t })
}

// begun removes a task from those that are beginning, and returns its place.
func (t task) begun() fairq.Place {
	i := t.indexOfBeginning()
	place := t.beginning[i].place
	t.openRun.beginning = slices.Delete(t.beginning, i, i+1)
	return place
}

// over reports whether the main tasks have begun and all have ended: no timeout applies to
// what follows, as to the evaluation of the output.
func (p *phase) over() bool { return p.frontier != nil && (p.hook() || p.frontier.Done()) }

// hook reports whether the main tasks are over.
func (p *phase) hook() bool { return p.part != flows.PartMain }

// holds reports whether a task, which may be nil, belongs to the phase.
func (p *phase) holds(spec *flows.Task) bool {
	return spec != nil && spec.Node < len(p.tasks) && p.tasks[spec.Node] == spec
}

// task is one task of an open run, or an item of one that is fanned out.
type task struct {
	*openRun
	spec *flows.Task
	node int   // in the phase's graph
	item *item // nil for the task itself
}

// leaf is the task at a node of the phase's graph.
func (o *openRun) leaf(node int) task { return task{openRun: o, spec: o.phase.tasks[node], node: node} }

func (t task) ref() run.TaskRef {
	if t.item != nil {
		return run.TaskRef{Task: t.spec.Name, Key: t.item.Key}
	}
	return run.TaskRef{Task: t.spec.Name}
}

// priority orders the ready tasks: those of backfills come after everything that is
// due.
func (t task) priority() int {
	if t.backfill {
		return math.MinInt
	}
	return t.spec.Priority
}

// state is the recorded state of the task, nil before anything has happened. It is
// looked up once: a task run stays where it is.
func (t task) state() *run.TaskRun {
	known := &t.phase.states[t.node]
	if t.item != nil {
		known = &t.item.state
	}
	if *known == nil {
		*known = t.run.Task(t.ref())
	}
	return *known
}

func (e *executor) newOpenRun(r *run.Run, f *flows.Flow) *openRun {
	o := &openRun{
		run: r, flow: f, clock: e.clock,
		completion: new(completion),
	}
	o.backfill = r.Trigger.Kind == run.TriggerBackfill || r.Parent != nil && e.isBackfill(r.Parent.Run)
	if err := o.keepContinuation(); err != nil {
		e.fail(err) // a recorded continuation was checked when the run was reopened
	}
	e.open[r.ID] = o
	e.limits.retain(o)
	e.schedules.noteOpened(o)
	return o
}

// taskNames gives a flow's main tasks in order of declaration. The tasks of hooks come
// after them, if there was a reason to run them.
func taskNames(f *flows.Flow) []string {
	names := make([]string, len(f.Tasks))
	for i, t := range f.Tasks {
		names[i] = t.Name
	}
	return names
}

// event makes an event of the run that happens now.
func (o *openRun) event(data run.EventData) run.Event {
	return run.Event{Run: o.run.ID, At: o.clock.now(), Data: data}
}
