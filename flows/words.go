package flows

import (
	"slices"

	"github.com/flowhost/flowhost/run"
)

// moment says when an argument is evaluated, and so which values it may use.
type moment int

const (
	constant  moment = iota // while loading, before any name is known
	deployed                // while loading: var, local, flow
	pluginRef               // while loading: also plugin
	filtering               // when a trigger fires: also trigger
	keying                  // when a trigger fires: also param
	running                 // in a run: also run and task; error in on_failure
	retrying                // when an attempt has failed: as running; error is the attempt's
	apart                   // read by its own decoder: types, lists of references
	mocking                 // of a test: when a call begins that is mocked
	asserting               // of a test: when its runs are over
)

// argument is a word of the form name = expression. One of a later version needs
// a name only.
type argument struct {
	name     string
	at       moment
	kind     kind
	bounds   string   // of a number: "from 1 to 100"
	oneOf    []string // the texts that it may be; any without them
	required bool
	either   bool   // required, unless another one is in its place
	preset   string // what holds without it: a value as it is written, or a few words
	about    string // what it is for, in one line
	later    bool   // known to the full language, not to this version
}

// block is a word of the form name "label" { … }.
type block struct {
	name   string
	labels []string
	body   *words // nil for later ones and for free attributes
	single bool   // at most one in its parent
	about  string // what it declares, in one line
	later  bool
}

// words is what may be written in one kind of block. The tables below are the
// whole language, the words that come later included.
type words struct {
	title     string // in messages: "a task block"
	arguments []argument
	blocks    []block
}

func (w *words) argument(name string) *argument {
	for i := range w.arguments {
		if w.arguments[i].name == name {
			return &w.arguments[i]
		}
	}
	return nil
}

func (w *words) block(name string) *block {
	for i := range w.blocks {
		if w.blocks[i].name == name {
			return &w.blocks[i]
		}
	}
	return nil
}

// names lists the words of this version.
func (w *words) names() (arguments, blocks []string) {
	for _, a := range w.arguments {
		if !a.later {
			arguments = append(arguments, a.name)
		}
	}
	for _, b := range w.blocks {
		if !b.later {
			blocks = append(blocks, b.name)
		}
	}
	return arguments, blocks
}

// aName is the label of blocks that declare something.
var aName = []string{"name"}

var fileWords = &words{
	title: "a flow file",
	blocks: []block{
		{name: "variable", labels: aName, body: variableWords, about: "a value from outside, known at load"},
		{name: "locals", about: "named expressions"},
		{name: "plugin", labels: aName, body: pluginWords, about: "a module, with its config, limits and grants"},
		{name: "defaults", body: defaultsWords, single: true, about: "timeout and retries for the tasks of the module"},
		{name: "limit", labels: aName, body: limitWords, about: "a bound that tasks of several flows share"},
		{name: "flow", labels: aName, body: flowWords, about: "a flow"},
		{name: "secret", labels: aName, later: true},
	},
}

var variableWords = &words{
	title: "a variable block",
	arguments: []argument{
		{name: "type", at: apart, kind: aType, preset: "any", about: "what values it takes: string, list(number), object({ … }), …"},
		{name: "default", at: constant, kind: anyValue, preset: "none: a value must be given", about: "used when no value is given"},
		{name: "description", at: constant, kind: aText, about: "for readers"},
		{name: "sensitive", at: constant, kind: aBool, preset: "false", about: "keeps the value out of messages and of the recorded definition"},
	},
	blocks: []block{{name: "validation", body: validationWords, about: "a condition that the value must meet"}},
}

var validationWords = &words{
	title: "a validation block",
	arguments: []argument{
		{name: "condition", at: apart, kind: aBool, required: true, about: "must hold; refers to the value itself and to nothing else"},
		{name: "error_message", at: apart, kind: aText, required: true, about: "shown when the condition is false; may use the value"},
	},
}

var pluginWords = &words{
	title: "a plugin block",
	arguments: []argument{
		{name: "source", at: deployed, kind: aText, required: true, about: "path of the module, .wasm"},
		{name: "digest", at: deployed, kind: aText, preset: "not checked", about: `"sha256:…" of the module; another module is an error`},
		{name: "config", at: deployed, kind: anObject, preset: "none", about: "given to every task of the plugin"},
		{name: "abi", later: true},
	},
	blocks: []block{
		{name: "limits", body: limitsWords, single: true, about: "bounds of each call"},
		{name: "grant", body: grantWords, single: true, about: "what the module may use"},
		{name: "pool", later: true},
	},
}

var grantWords = &words{
	title: "a grant block",
	arguments: []argument{
		{name: "files", at: deployed, kind: texts, preset: "none", about: `folders, each "ro" or "rw": { "./data" = "ro" }`},
		{name: "http", later: true},
		{name: "env", later: true},
		{name: "kv", later: true},
		{name: "publish", later: true},
		{name: "secrets", later: true},
		{name: "clock", later: true},
		{name: "random", later: true},
	},
}

var limitsWords = &words{
	title: "a limits block",
	arguments: []argument{
		{name: "memory", at: deployed, kind: aSize, bounds: "at most 4GiB", preset: `"256MiB"`, about: "linear memory of one call"},
		{name: "output", at: deployed, kind: aSize, bounds: "at most 16MiB", preset: `"1MiB"`, about: "output of one call"},
		{name: "log", at: deployed, kind: aSize, bounds: "at most 4MiB", preset: `"64KiB"`, about: "log of one call that is kept: its beginning and its end"},
		{name: "fuel", at: deployed, kind: aWhole, bounds: "1 or more", preset: "unlimited", about: "units of work of one call, about one for each instruction"},
	},
}

var limitWords = &words{
	title: "a limit block",
	arguments: []argument{
		{name: "concurrency", at: deployed, kind: aWhole, bounds: "1 or more", preset: "none", about: "attempts that are under way at once; this, rate, or both"},
		{name: "rate", at: deployed, kind: aText, preset: "none", about: `attempts that start in any such time: "10/s", "100/15m"`},
	},
}

var defaultsWords = &words{
	title: "a defaults block",
	arguments: []argument{
		{name: "timeout", at: deployed, kind: aDuration, preset: `the host's, "5m"`, about: "of an attempt"},
		{name: "retries", at: deployed, kind: aWhole, bounds: "from 0 to 99999", preset: "0", about: "further attempts after the first"},
	},
	blocks: []block{{name: "retry", body: retryWords, single: true, about: "when and how often to try again"}},
}

var retryWords = &words{
	title: "a retry block",
	arguments: []argument{
		{name: "attempts", at: deployed, kind: aWhole, bounds: "from 1 to 100000", preset: "1", about: "attempts in all, the first included"},
		{name: "backoff", at: deployed, kind: aText, oneOf: []string{string(run.Exponential), string(run.Constant)}, preset: `"exponential"`, about: "how the delay grows with each attempt"},
		{name: "delay", at: deployed, kind: aDuration, preset: `"1s"`, about: "before the second attempt"},
		{name: "max", at: deployed, kind: aDuration, preset: `"5m"`, about: "the longest delay"},
		{name: "jitter", at: deployed, kind: aNumber, bounds: "from 0 to 1", preset: "0", about: "largest share that is taken off the delay at random"},
		{name: "when", at: retrying, kind: aBool, preset: "error.retryable", about: "whether another attempt follows"},
	},
}

var flowWords = &words{
	title: "a flow block",
	arguments: []argument{
		{name: "description", at: deployed, kind: aText, about: "for readers"},
		{name: "labels", at: deployed, kind: texts, preset: "none", about: "seen by expressions as run.labels"},
		{name: "timeout", at: deployed, kind: aDuration, preset: "none", about: "of the run, from its start to the end of its main tasks"},
		{name: "priority", at: deployed, kind: aWhole, bounds: "from -100 to 100", preset: "0", about: "of the flow's tasks"},
	},
	blocks: []block{
		{name: "param", labels: aName, body: variableWords, about: "a value that a run is given"},
		{name: "trigger", labels: []string{"kind", "name"}, about: "what starts runs by itself"},
		{name: "concurrency", body: concurrencyWords, single: true, about: "how many runs are under way at once"},
		{name: "locals", about: "named expressions, also of run values"},
		{name: "task", labels: aName, body: taskWords, about: "a call of a function"},
		{name: "wait", labels: aName, body: waitWords, about: "a pause until a time, a message, a signal or an approval"},
		{name: "output", labels: aName, body: outputWords, about: "a value of the run's output"},
		{name: "defaults", body: defaultsWords, single: true, about: "timeout and retries for the tasks of the flow"},
		{name: "on_failure", body: onFailureWords, single: true, about: "tasks that run when the run fails"},
		{name: "on_success", body: onSuccessWords, single: true, about: "tasks that run when all main tasks went well"},
		{name: "finally", body: finallyWords, single: true, about: "tasks that run after all others, however they ended"},
		{name: "group", labels: aName, body: groupWords, about: "tasks, waits and groups that run as one"},
	},
}

// onErrorFail and onErrorContinue say what the failure of a task means for others.
const (
	onErrorFail     = "fail"
	onErrorContinue = "continue"
)

var groupWords = newGroupWords()

// newGroupWords makes the table that holds itself: groups stand in groups.
func newGroupWords() *words {
	w := &words{
		title: "a group block",
		arguments: []argument{
			{name: "mode", at: deployed, kind: aText, oneOf: []string{string(GroupParallel), string(GroupSerial), string(GroupFirstSuccess), string(GroupRace)}, preset: `"parallel"`, about: "how the members follow each other"},
			{name: "max_parallel", at: deployed, kind: aWhole, bounds: "1 or more", preset: "none", about: "tasks of the group that are under way at once"},
			{name: "when", at: running, kind: aBool, preset: "true", about: "false: the members are skipped"},
			{name: "after", at: apart, kind: someTasks, preset: "none", about: "order without data: [task.a, group.b]"},
		},
	}
	w.blocks = append(slices.Clone(memberWords), block{name: "group", labels: aName, body: w, about: "tasks, waits and groups that run as one"})
	return w
}

// memberWords are what parts of a flow and groups hold, beside groups.
var memberWords = []block{
	{name: "task", labels: aName, body: taskWords, about: "a call of a function"},
	{name: "wait", labels: aName, body: waitWords, about: "a pause until a time, a message, a signal or an approval"},
}

var scheduleWords = &words{
	title: "a schedule trigger",
	arguments: []argument{
		{name: "cron", at: deployed, kind: aText, about: "cron expression; exactly one of cron, every, at, calendar"},
		{name: "every", at: deployed, kind: aDuration, about: "interval, 1 ms at least"},
		{name: "timezone", at: deployed, kind: aText, preset: `"UTC"`, about: "IANA name of the zone of cron and calendar"},
		{name: "params", at: filtering, kind: anObject, preset: "none", about: "values of params"},
		{name: "enabled", at: deployed, kind: aBool, preset: "true", about: "false keeps the trigger from firing"},
		{name: "at", at: deployed, kind: aTime, about: "one instant"},
		{name: "calendar", at: deployed, kind: aText, about: "calendar expression of systemd"},
		{name: "offset", at: deployed, kind: aDuration, preset: "none", about: "with every: shifts all times"},
		{name: "dst", at: deployed, kind: aText, oneOf: dstWords(), preset: `"cron"`, about: "what a change of the clock does to local times"},
		{name: "day_match", at: deployed, kind: aText, oneOf: []string{"or", "and"}, preset: `"or"`, about: "with cron: whether one or both day fields must match when both restrict"},
		{name: "start", at: deployed, kind: aTime, preset: "none", about: "the first instant that may fire"},
		{name: "end", at: deployed, kind: aTime, preset: "none", about: "the first instant that may not fire any more"},
		{name: "count", at: deployed, kind: aWhole, bounds: "1 or more", preset: "none", about: "runs after which the schedule has ended"},
		{name: "jitter", at: deployed, kind: aDuration, preset: "none", about: "each fire is delayed by less than this"},
		{name: "splay", at: deployed, kind: aText, oneOf: []string{"hash"}, preset: "none", about: "with jitter: one delay for all times of the trigger"},
		{name: "misfire_after", at: deployed, kind: aDuration, preset: `"1m"`, about: "how late a fire may be and still be on time"},
		{name: "catch_up", at: deployed, kind: aText, oneOf: []string{"latest", "none", "all"}, preset: `"latest"`, about: "which of the times that were missed fire"},
		{name: "catch_up_window", at: deployed, kind: aDuration, preset: `"1h"`, about: "how long ago they may have been due"},
		{name: "catch_up_max", at: deployed, kind: aWhole, bounds: "from 1 to 10000", preset: "100", about: "how many of them fire, the latest"},
		{name: "overlap", at: deployed, kind: aText, oneOf: overlapWords(), preset: `"skip"`, about: "what becomes of a fire while an earlier run is going"},
		{name: "overlap_max", at: deployed, kind: aWhole, bounds: "from 1 to 10000", preset: "100", about: `with overlap "queue" or "node": runs that wait`},
		{name: "pause_after", at: deployed, kind: aWhole, bounds: "1 or more", preset: "never", about: "failed runs in a row that pause the schedule"},
	},
}

var messageWords = &words{
	title: "a message trigger",
	arguments: []argument{
		{name: "subject", at: deployed, kind: aText, required: true, about: "subject on NATS, with * and > as there"},
		{name: "stream", at: deployed, kind: aText, preset: "none: core NATS", about: "JetStream stream to read; with durable"},
		{name: "durable", at: deployed, kind: aText, preset: "none", about: "name of the stream's consumer; with stream"},
		{name: "payload", at: apart, kind: aType, preset: "any", about: "what messages it takes: object({ id = string, note = optional(string) }), …"},
		{name: "filter", at: filtering, kind: aBool, preset: "true", about: "a message for which it is false starts no run"},
		{name: "params", at: filtering, kind: anObject, preset: "none", about: "values of params"},
		{name: "enabled", at: deployed, kind: aBool, preset: "true", about: "false keeps the trigger from firing"},
		{name: "dedupe_key", later: true},
	},
}

var followWords = &words{
	title: "a flow trigger",
	arguments: []argument{
		{name: "after", at: deployed, kind: aFlow, required: true, about: "flow.NAME of the same folder, whose runs it follows"},
		{name: "on", at: deployed, kind: someWords, oneOf: endWords, preset: `["succeeded"]`, about: "which ends of its runs start one"},
		{name: "filter", at: filtering, kind: aBool, preset: "true", about: "an end for which it is false starts no run"},
		{name: "params", at: filtering, kind: anObject, preset: "none", about: "values of params"},
		{name: "enabled", at: deployed, kind: aBool, preset: "true", about: "false keeps the trigger from firing"},
	},
}

// endWords are the states in which runs end.
var endWords = []string{string(run.Succeeded), string(run.Failed), string(run.Canceled)}

// triggerKinds are the first labels of trigger blocks; nil for later ones.
var triggerKinds = map[string]*words{
	"schedule": scheduleWords,
	"message":  messageWords,
	"webhook":  nil,
	"flow":     followWords,
}

var concurrencyWords = &words{
	title: "a concurrency block",
	arguments: []argument{
		{name: "limit", at: deployed, kind: aWhole, bounds: "1 or more", preset: "1", about: "runs that are under way at once"},
		{name: "key", at: keying, kind: aScalar, preset: "none: one limit for all runs", about: "each value of it has the limit for itself"},
		{name: "on_limit", at: deployed, kind: aText, oneOf: []string{string(LimitQueue), string(LimitSkip), string(LimitCancelRunning)}, preset: `"queue"`, about: "what becomes of a run over the limit"},
	},
}

var taskWords = &words{
	title: "a task block",
	arguments: []argument{
		{name: "plugin", at: pluginRef, kind: aPlugin, either: true, preset: "none: the task has flow", about: "plugin.NAME, or the path of a module"},
		{name: "flow", at: deployed, kind: aFlow, either: true, preset: "none: the task has plugin", about: "flow.NAME of the same folder: a sub-flow"},
		{name: "function", at: deployed, kind: aText, preset: "the only one, or main", about: "function of the module"},
		{name: "input", at: running, kind: anyValue, preset: "null", about: "given to the function as JSON; to a flow, its params by name"},
		{name: "config", at: running, kind: anObject, preset: "the plugin's", about: "laid over the plugin's config"},
		{name: "when", at: running, kind: aBool, preset: "true", about: "false: the task is skipped"},
		{name: "after", at: apart, kind: someTasks, preset: "none", about: "order without data: [task.a, wait.b]"},
		{name: "run_on", at: deployed, kind: aText, oneOf: []string{string(RunOnSuccess), string(RunOnFailure), string(RunAlways)}, preset: `"success"`, about: "which ends of the tasks before it let it run"},
		{name: "timeout", at: deployed, kind: aDuration, preset: "the defaults'; none for a flow", about: "of one attempt"},
		{name: "retries", at: deployed, kind: aWhole, bounds: "from 0 to 99999", preset: "the defaults'; 0 for a flow", about: "further attempts after the first; short for retry { attempts = n + 1 }"},
		{name: "limit", at: apart, kind: someLimits, preset: "none", about: "limit.NAME, or a list of these: what its attempts count for"},
		{name: "priority", at: deployed, kind: aWhole, bounds: "from -100 to 100", preset: "the flow's", about: "of the attempts that wait, the highest goes first"},
		{name: "description", at: deployed, kind: aText, about: "for readers"},
		{name: "for_each", at: running, kind: someItems, preset: "none", about: "the task is run for each item of this list, set or object"},
		{name: "max_parallel", at: deployed, kind: aWhole, bounds: "1 or more", preset: "none", about: "with for_each: items that are under way at once"},
		{name: "on_error", at: deployed, kind: aText, oneOf: []string{onErrorFail, onErrorContinue}, preset: `"fail"`, about: "continue: for the run and what comes after, a failure of the task is none"},
	},
	blocks: []block{
		{name: "retry", body: retryWords, single: true, about: "when and how often to try again"},
		{name: "limits", body: limitsWords, single: true, about: "bounds of each call, before the plugin's"},
		{name: "grant", body: grantWords, single: true, about: "what the task may use, of what its plugin may"},
		{name: "cache", later: true},
		{name: "placement", later: true},
	},
}

var waitWords = &words{
	title: "a wait block",
	arguments: []argument{
		{name: "duration", at: running, kind: aDuration, about: "ends after it; exactly one of duration, until, subject, approval, signal"},
		{name: "until", at: running, kind: aTime, about: "ends at this instant, at once when it has passed"},
		{name: "subject", at: running, kind: aText, about: "ends with a message on this subject on NATS"},
		{name: "approval", at: running, kind: aText, about: "what is to be approved; ends with flowhost approve"},
		{name: "signal", at: deployed, kind: aBool, preset: "false", about: "true: ends with flowhost signal"},
		{name: "timeout", at: deployed, kind: aDuration, preset: "none", about: "after which the wait fails"},
		{name: "when", at: running, kind: aBool, preset: "true", about: "false: the wait is skipped"},
		{name: "after", at: apart, kind: someTasks, preset: "none", about: "order without data: [task.a, wait.b]"},
		{name: "run_on", at: deployed, kind: aText, oneOf: []string{string(RunOnSuccess), string(RunOnFailure), string(RunAlways)}, preset: `"success"`, about: "after which ends of what is before it the wait starts"},
		{name: "description", at: deployed, kind: aText, about: "for readers"},
	},
}

var outputWords = &words{
	title: "an output block",
	arguments: []argument{
		{name: "value", at: running, kind: anyValue, required: true, about: "what the run gives under this name"},
		{name: "description", at: deployed, kind: aText, about: "for readers"},
		{name: "sensitive", later: true},
	},
}

var onFailureWords = &words{
	title:  "an on_failure block",
	blocks: groupWords.blocks,
}

var onSuccessWords = &words{
	title:  "an on_success block",
	blocks: groupWords.blocks,
}

var finallyWords = &words{
	title:     "a finally block",
	arguments: []argument{{name: "timeout", at: deployed, kind: aDuration, preset: `"5m"`, about: "of all its tasks together"}},
	blocks:    groupWords.blocks,
}

// hooks are the words of the parts that are blocks of their own.
var hooks = map[Part]*words{
	PartOnFailure: onFailureWords,
	PartOnSuccess: onSuccessWords,
	PartFinally:   finallyWords,
}
