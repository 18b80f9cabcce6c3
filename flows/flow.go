package flows

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Flow is a checked flow. It is not changed after loading.
type Flow struct {
	Name        string // with the module's prefix, "billing/invoice"
	Description string
	Labels      map[string]string
	Timeout     time.Duration // of a run; 0 is none
	Priority    int           // -100 to 100: of its tasks that state none, and of its schedules at one instant
	Concurrency *Concurrency  // nil without a limit
	LimitedBy   []*Limit      // those that its tasks refer to, sorted by name
	Range       hcl.Range

	// Definition is shared by the flows of a module; DefinitionDigest is its digest.
	Definition       *run.Definition
	DefinitionDigest string

	Params   []*Param // declared order, as with all that follows
	Triggers []*Trigger
	Tasks    []*Task // the main ones
	Outputs  []*Output

	Graph    *dag.Graph // of the main section
	Sections []*Section // the main tasks and the hooks that there are, in the order in which they run

	edges    []Edge
	params   map[string]*Param
	tasks    map[string]*Task  // all of them
	groups   map[string]*Group // all of them
	outputs  map[string]ref    // of tasks and groups, by the name that runs have for them
	payloads payloads          // of requests that name no message trigger
	sinks    []ref             // outputs of main tasks and groups on which no other depends
	base     *hcl.EvalContext  // of expressions in runs
	opened   int               // bytes of JSON that expressions look into
}

// Concurrency bounds how many runs of a flow are under way at once, for each
// value of its key.
type Concurrency struct {
	Limit   int
	OnLimit OnLimit

	key *expression // nil: all runs share one limit
}

// Trigger starts runs of its flow by itself.
type Trigger struct {
	Name    string
	Kind    run.TriggerKind // schedule, message or flow
	Enabled bool
	Range   hcl.Range

	// Of schedules.
	Schedule      scheduler.Schedule // within its bounds
	Spec          string             // the expression, interval or instant, as written
	Zone          string             // IANA name; UTC unless stated
	Identity      string             // what the nominal times come from: with another one, the schedule starts again
	Jitter        scheduler.Jitter
	Policy        scheduler.Policy
	CatchUpStated bool // the policy holds for pauses, too
	Overlap       Overlap
	OverlapMax    int // runs that wait, with OverlapQueue and OverlapNode
	Count         int // runs after which the schedule ends; 0 for no such bound
	PauseAfter    int // failures in a row that pause it; 0 for never

	// Of messages. Stream and Durable are both set for JetStream, or both empty.
	Subject, Stream, Durable string
	Payload                  string // the type of its messages, as flow files have it; empty when they may be anything

	// Of the ends of other flows' runs.
	After string      // the flow, by its full name
	On    []run.State // in which its run has ended

	after    hcl.Range // where the flow is named
	payloads payloads
	filter   *expression
	params   *expression
}

// OnLimit is what happens to a request for a run that finds no free slot.
type OnLimit string

// What to do about runs over the limit.
const (
	LimitQueue         OnLimit = "queue"          // the run is accepted and waits
	LimitSkip          OnLimit = "skip"           // there is no run
	LimitCancelRunning OnLimit = "cancel_running" // those that hold the slots, or wait for one, are canceled, and the run follows
)

// Overlap is what a schedule does while an earlier run of it is open.
type Overlap string

// What to do about runs that overlap.
const (
	OverlapSkip          Overlap = "skip"           // the new run is left out
	OverlapQueueOne      Overlap = "queue_one"      // one waits for the end of the earlier, others are left out
	OverlapQueue         Overlap = "queue"          // all wait, up to a bound
	OverlapCancelRunning Overlap = "cancel_running" // the earlier one is canceled, the new one follows
	OverlapAllow         Overlap = "allow"          // both go
	OverlapNode          Overlap = "node"           // each task waits for the same task of the earlier run
)

// DefaultOverlapMax is how many runs of a schedule wait at most, unless stated.
const DefaultOverlapMax = 100

// RunOn is the condition on the ends of its upstream tasks under which a task runs.
type RunOn string

// Conditions on upstream tasks.
const (
	RunOnSuccess RunOn = "success" // all succeeded or were skipped
	RunOnFailure RunOn = "failure" // at least one failed
	RunAlways    RunOn = "always"
)

// Task is one task of a flow, or a wait: that has a name like "wait.approval" and
// calls nothing.
type Task struct {
	Name        string
	Description string
	Range       hcl.Range // of the block's header
	Plugin      Plugin
	Function    string // "" for a module without named functions
	Flow        string // full name of the flow that the task runs; "" for a call of a function
	Child       *Flow  // that flow
	RunOn       RunOn
	Priority    int             // -100 to 100, its own or the flow's: of the tasks that are ready, higher ones start first
	Timeout     time.Duration   // of an attempt; 0 is the host's default, and none for a sub-flow
	Heartbeat   time.Duration   // for how long an attempt may be silent; 0: until its time is up
	Retry       run.RetryPolicy // the zero value is one attempt
	Limits      run.Limits      // zero fields are the host's defaults
	Grants      run.Grants      // what its calls may touch; the zero value is nothing
	LimitedBy   []*Limit        // sorted by name: of each, an attempt under way takes a slot
	Group       *Group          // in which it is; nil for none
	Node        int             // in the section's graph
	FanOut      bool            // for_each: it is run for each item
	MaxParallel int             // items that are under way at once; 0 for no bound
	Wait        *Wait           // nil for tasks that call a function
	Continue    bool            // on_error: for all others, it is done when it has failed

	part   Part
	number int         // among all tasks and groups of the flow, from 0
	output ref         // task.NAME.output or wait.NAME.payload
	when   *expression // nil: always
	each   *expression // for_each; nil for none
	eachOf *reference  // what for_each names, nil when it computes
	again  *expression // nil: the failure's Retryable decides
	input  *inputs
	config *inputs
	after  []dependency
	called hcl.Range // where the task names the flow that it runs
}

// Task is the task of that name in any part of the flow, or nil.
func (f *Flow) Task(name string) *Task { return f.tasks[name] }

// At is the place of the task's block, "orders.hcl:14".
func (t *Task) At() string { return diag.Place(t.Range) }

// Output is one value of a run's output.
type Output struct {
	Name        string
	Description string
	Range       hcl.Range

	value *inputs
}

// Trigger is the trigger of that name, or nil.
func (f *Flow) Trigger(name string) *Trigger {
	for _, t := range f.Triggers {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Part is which part of a flow a section is.
type Part string

// The parts of a flow, in the order in which they run.
const (
	PartMain      Part = "main"
	PartOnFailure Part = "on_failure" // after the main tasks, when the run has failed or its time was up
	PartOnSuccess Part = "on_success" // after the main tasks, when all went well
	PartFinally   Part = "finally"    // after all of these, also when the run was canceled
)

// DefaultFinally is how long the tasks of finally may take together, unless
// stated: they run after everything else, also when nobody waits any more.
const DefaultFinally = 5 * time.Minute

// Section is the tasks of one part of a flow.
type Section struct {
	Part    Part
	Tasks   []*Task       // also those in groups
	Groups  []*Group      // each before those within it
	Nodes   []Node        // those of the tasks, then the beginning and the end of each group
	Graph   *dag.Graph    // of Nodes
	Timeout time.Duration // of all tasks together, for PartFinally
}

// Node is a task, or the beginning or the end of a group, in the graph of a
// section.
type Node struct {
	Task   *Task  // nil for those of a group
	Group  *Group // whose beginning or end it is; nil for a task
	End    bool
	Parent *Group // in which the task or the group is; nil for none
	Place  int    // among the members of Parent

	// Needs are the nodes that decide whether the task runs, or the group begins.
	Needs []Need
}

// Need is a node on whose end another one depends.
type Need struct {
	Node int

	// Before is set for the one before it in a serial group, to which nothing
	// refers: that it was skipped decides nothing.
	Before bool
}

// Exit is the node at which a member of a group ends.
func (m Member) Exit() int {
	if m.Group != nil {
		return m.Group.End
	}
	return m.Task.Node
}

// entry is the node at which it begins.
func (m Member) entry() int {
	if m.Group != nil {
		return m.Group.Begin
	}
	return m.Task.Node
}

// Section is a part of the flow, nil when the flow has none. There is always a
// main part.
func (f *Flow) Section(part Part) *Section {
	for _, s := range f.Sections {
		if s.Part == part {
			return s
		}
	}
	return nil
}

// AllTasks are the tasks of all parts, part by part.
func (f *Flow) AllTasks() []*Task {
	var all []*Task
	for _, s := range f.Sections {
		all = append(all, s.Tasks...)
	}
	return all
}

// sees reports whether the tasks of a part may refer to those of another: only to
// their own and those of parts that have run before.
func (p Part) sees(other Part) bool {
	switch other {
	case PartMain:
		return true
	case PartOnFailure, PartOnSuccess:
		return p == other || p == PartFinally
	}
	return p == other
}
