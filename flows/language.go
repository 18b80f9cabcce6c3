package flows

import (
	"slices"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/run"
)

// Sentences for words of other tools.
const (
	writeAfter     = "A task runs after those whose outputs it uses; for order without data, write after = [task.NAME]."
	writePlugin    = "A task calls a function of a WebAssembly module: write plugin = \"./NAME.wasm\", with function and input. To make one of a program, see flowhost plugin build."
	writeNoImage   = "There are no containers: a task calls a function of a WebAssembly module. Write plugin = \"./NAME.wasm\"."
	writeInput     = "Write input = { … }, which the function receives as JSON."
	writeNoEnv     = "Pass values in input, or in config for the plugin as a whole. A program that reads its environment gets it by grant { env = { NAME = … } }."
	writeWhen      = "Write when = …, a condition."
	writeForEach   = "Write for_each = LIST; for a number of times, range(N)."
	writeGroup     = "The order of tasks follows from their references; to put some together, write group \"NAME\" { … }."
	writeTasks     = "Write a block task \"NAME\" { … } for each."
	writeRetries   = "Write retries = N, or a retry block."
	writeTimeout   = "Write timeout with a unit: timeout = \"5m\"."
	writeOnError   = "Write on_error = \"continue\"."
	writeHook      = "That is a block of the flow, on_failure { … }; a task can run on failures of others with run_on = \"failure\"."
	writeSchedule  = "Write trigger \"schedule\" \"NAME\" { … }, with cron, every, at or calendar."
	writeTrigger   = "Write trigger \"schedule\", \"message\" or \"flow\" with a name and a block."
	writeParam     = "Write param \"NAME\" { … } for each value of a run."
	writeFlow      = "Write flow \"NAME\" { … }."
	writeInFlow    = "It belongs in a flow: flow \"NAME\" { … }."
	writeVariable  = "Write variable \"NAME\" { … } for values from outside, locals { … } for others."
	writeLocalFlow = "All files of a directory are one module already, and its subdirectories are others."
)

// aName is the label of blocks that declare something.
var aName = []string{"name"}

var fileSchema = &lang.Schema{
	Title: "a flow file",
	Blocks: []lang.Block{
		{Name: "variable", Labels: aName, Body: variableSchema, About: "a value from outside, known at load"},
		{Name: "locals", About: "named expressions"},
		{Name: "plugin", Labels: aName, Body: pluginSchema, About: "a module, with its config, limits and grants"},
		{Name: "defaults", Body: defaultsSchema, Single: true, About: "timeout and retries for the tasks of the module"},
		{Name: "limit", Labels: aName, Body: limitSchema, About: "a bound that tasks of several flows share"},
		{Name: "connection", Labels: aName, Body: reachspec.Connection, About: "a named way out, whose credentials stay in the host"},
		{Name: "secret", Labels: aName, Body: reachspec.Secret, About: "where a secret is"},
		{Name: "flow", Labels: aName, Body: flowSchema, About: "a flow"},
	},
	Foreign: map[string]string{
		"task": writeInFlow, "step": writeInFlow, "trigger": writeInFlow, "param": writeInFlow, "schedule": writeInFlow,
		"workflow": writeFlow, "job": writeFlow, "pipeline": writeFlow, "dag": writeFlow,
		"input": writeVariable, "vars": writeVariable, "local": writeVariable,
		"module": writeLocalFlow, "include": writeLocalFlow, "import": writeLocalFlow,
	},
}

var variableSchema = &lang.Schema{
	Title: "a variable block",
	Arguments: []lang.Argument{
		{Name: "type", Phase: lang.Own, Kind: lang.Type, Default: "any", About: "what values it takes: string, list(number), object({ … }), …"},
		{Name: "default", Phase: lang.Constant, Kind: lang.AnyValue, Default: "none: a value must be given", About: "used when no value is given"},
		{Name: "description", Phase: lang.Constant, Kind: lang.String, About: "for readers"},
		{Name: "sensitive", Phase: lang.Constant, Kind: lang.Bool, Default: "false", About: "keeps the value out of messages and of the recorded definition"},
	},
	Blocks: []lang.Block{{Name: "validation", Body: validationSchema, About: "a condition that the value must meet"}},
}

var validationSchema = &lang.Schema{
	Title: "a validation block",
	Arguments: []lang.Argument{
		{Name: "condition", Phase: lang.Own, Kind: lang.Bool, Required: true, About: "must hold; refers to the value itself and to nothing else"},
		{Name: "error_message", Phase: lang.Own, Kind: lang.String, Required: true, About: "shown when the condition is false; may use the value"},
	},
}

var pluginSchema = &lang.Schema{
	Title: "a plugin block",
	Arguments: []lang.Argument{
		{Name: "source", Phase: lang.Load, Kind: lang.String, Required: true, About: "path of the module, .wasm"},
		{Name: "digest", Phase: lang.Load, Kind: lang.String, Default: "not checked", About: `"sha256:…" of the module; another module is an error`},
		{Name: "config", Phase: lang.Load, Kind: lang.Object, Default: "none", About: "given to every task of the plugin"},
		{Name: "abi", Later: true},
	},
	Blocks: []lang.Block{
		{Name: "limits", Body: limitsSchema, Single: true, About: "bounds of each call"},
		{Name: "grant", Body: reachspec.Grant, Single: true, About: "what the module may use"},
		{Name: "pool", Later: true},
	},
}

var limitsSchema = &lang.Schema{
	Title: "a limits block",
	Arguments: []lang.Argument{
		{Name: "memory", Phase: lang.Load, Kind: lang.Size, Bounds: "at most 4GiB", Default: `"256MiB"`, About: "linear memory of one call"},
		{Name: "output", Phase: lang.Load, Kind: lang.Size, Bounds: "at most 16MiB", Default: `"1MiB"`, About: "output of one call"},
		{Name: "log", Phase: lang.Load, Kind: lang.Size, Bounds: "at most 4MiB", Default: `"64KiB"`, About: "log of one call that is kept: its beginning and its end"},
		{Name: "fuel", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "unlimited", About: "units of work of one call, about one for each instruction"},
	},
}

var limitSchema = &lang.Schema{
	Title: "a limit block",
	Arguments: []lang.Argument{
		{Name: "concurrency", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "none", About: "attempts that are under way at once; this, rate, or both"},
		{Name: "rate", Phase: lang.Load, Kind: lang.String, Default: "none", About: `attempts that start in any such time: "10/s", "100/15m"`},
	},
}

var defaultsSchema = &lang.Schema{
	Title: "a defaults block",
	Arguments: []lang.Argument{
		{Name: "timeout", Phase: lang.Load, Kind: lang.Duration, Default: `the host's, "5m"`, About: "of an attempt"},
		{Name: "retries", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 0 to 99999", Default: "0", About: "further attempts after the first"},
	},
	Blocks: []lang.Block{{Name: "retry", Body: retrySchema, Single: true, About: "when and how often to try again"}},
}

var retrySchema = &lang.Schema{
	Title: "a retry block",
	Arguments: []lang.Argument{
		{Name: "attempts", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 100000", Default: "1", About: "attempts in all, the first included"},
		{Name: "backoff", Phase: lang.Load, Kind: lang.String, OneOf: []string{string(run.Exponential), string(run.Constant)}, Default: `"exponential"`, About: "how the delay grows with each attempt"},
		{Name: "delay", Phase: lang.Load, Kind: lang.Duration, Default: `"1s"`, About: "before the second attempt"},
		{Name: "max", Phase: lang.Load, Kind: lang.Duration, Default: `"5m"`, About: "the longest delay"},
		{Name: "jitter", Phase: lang.Load, Kind: lang.Number, Bounds: "from 0 to 1", Default: "0", About: "largest share that is taken off the delay at random"},
		{Name: "when", Phase: lang.Retry, Kind: lang.Bool, Default: "error.retryable", About: "whether another attempt follows"},
	},
}

var flowSchema = &lang.Schema{
	Title: "a flow block",
	Arguments: []lang.Argument{
		{Name: "description", Phase: lang.Load, Kind: lang.String, About: "for readers"},
		{Name: "labels", Phase: lang.Load, Kind: lang.StringMap, Default: "none", About: "seen by expressions as run.labels"},
		{Name: "timeout", Phase: lang.Load, Kind: lang.Duration, Default: "none", About: "of the run, from its start to the end of its main tasks"},
		{Name: "priority", Phase: lang.Load, Kind: lang.Integer, Bounds: "from -100 to 100", Default: "0", About: "of the flow's tasks"},
	},
	Blocks: []lang.Block{
		{Name: "param", Labels: aName, Body: variableSchema, About: "a value that a run is given"},
		{Name: "trigger", Labels: []string{"kind", "name"}, About: "what starts runs by itself"},
		{Name: "concurrency", Body: concurrencySchema, Single: true, About: "how many runs are under way at once"},
		{Name: "locals", About: "named expressions, also of run values"},
		{Name: "task", Labels: aName, Body: taskSchema, About: "a call of a function"},
		{Name: "wait", Labels: aName, Body: waitSchema, About: "a pause until a time, a message, a signal or an approval"},
		{Name: "output", Labels: aName, Body: outputSchema, About: "a value of the run's output"},
		{Name: "defaults", Body: defaultsSchema, Single: true, About: "timeout and retries for the tasks of the flow"},
		{Name: "on_failure", Body: onFailureSchema, Single: true, About: "tasks that run when the run fails"},
		{Name: "on_success", Body: onSuccessSchema, Single: true, About: "tasks that run when all main tasks went well"},
		{Name: "finally", Body: finallySchema, Single: true, About: "tasks that run after all others, however they ended"},
		{Name: "group", Labels: aName, Body: groupSchema, About: "tasks, waits and groups that run as one"},
	},
	Foreign: map[string]string{
		"cron": writeSchedule, "schedule": writeSchedule, "every": writeSchedule, "on": writeTrigger, "triggers": writeTrigger,
		"step": writeTasks, "steps": writeTasks, "job": writeTasks, "jobs": writeTasks, "tasks": writeTasks,
		"input": writeParam, "inputs": writeParam, "params": writeParam, "parameters": writeParam,
		"env": writeNoEnv, "environment": writeNoEnv, "depends_on": "Start a run when another flow's has ended with trigger \"flow\" \"NAME\" { after = flow.NAME }.",
		"retries": "Write retries in a defaults block, for all tasks.", "retry": "Write retry in a defaults block, for all tasks.",
	},
}

// onErrorFail and onErrorContinue are what the failure of a task means for others.
const (
	onErrorFail     = "fail"
	onErrorContinue = "continue"
)

var groupSchema = newGroupSchema()

// newGroupSchema makes the table that contains itself: groups contain groups.
func newGroupSchema() *lang.Schema {
	w := &lang.Schema{
		Title: "a group block",
		Arguments: []lang.Argument{
			{Name: "mode", Phase: lang.Load, Kind: lang.String, OneOf: []string{string(GroupParallel), string(GroupSerial), string(GroupFirstSuccess), string(GroupRace)}, Default: `"parallel"`, About: "how the members follow each other"},
			{Name: "max_parallel", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "none", About: "tasks of the group that are under way at once"},
			{Name: "when", Phase: lang.Run, Kind: lang.Bool, Default: "true", About: "false: the members are skipped"},
			{Name: "after", Phase: lang.Own, Kind: lang.Tasks, Default: "none", About: "order without data: [task.a, group.b]"},
		},
	}
	w.Blocks = append(slices.Clone(memberSchemas), lang.Block{Name: "group", Labels: aName, Body: w, About: "tasks, waits and groups that run as one"})
	w.Foreign = orderWords
	return w
}

// orderWords are those with which other tools state order.
var orderWords = map[string]string{"depends_on": writeAfter, "dependencies": writeAfter, "needs": writeAfter, "requires": writeAfter}

// memberSchemas are what parts of a flow and groups hold, beside groups.
var memberSchemas = []lang.Block{
	{Name: "task", Labels: aName, Body: taskSchema, About: "a call of a function"},
	{Name: "wait", Labels: aName, Body: waitSchema, About: "a pause until a time, a message, a signal or an approval"},
}

var scheduleSchema = &lang.Schema{
	Title: "a schedule trigger",
	Arguments: []lang.Argument{
		{Name: "cron", Phase: lang.Load, Kind: lang.String, About: "cron expression; exactly one of cron, every, at, calendar"},
		{Name: "every", Phase: lang.Load, Kind: lang.Duration, About: "interval, 1 ms at least"},
		{Name: "timezone", Phase: lang.Load, Kind: lang.String, Default: `"UTC"`, About: "IANA name of the zone of cron and calendar"},
		{Name: "params", Phase: lang.Fire, Kind: lang.Object, Default: "none", About: "values of params"},
		{Name: "enabled", Phase: lang.Load, Kind: lang.Bool, Default: "true", About: "false keeps the trigger from firing"},
		{Name: "at", Phase: lang.Load, Kind: lang.Time, About: "one instant"},
		{Name: "calendar", Phase: lang.Load, Kind: lang.String, About: "calendar expression of systemd"},
		{Name: "offset", Phase: lang.Load, Kind: lang.Duration, Default: "none", About: "with every: shifts all times"},
		{Name: "dst", Phase: lang.Load, Kind: lang.String, OneOf: dstValues(), Default: `"cron"`, About: "what a change of the clock does to local times"},
		{Name: "day_match", Phase: lang.Load, Kind: lang.String, OneOf: []string{"or", "and"}, Default: `"or"`, About: "with cron: whether one or both day fields must match when both restrict"},
		{Name: "start", Phase: lang.Load, Kind: lang.Time, Default: "none", About: "the first instant that may fire"},
		{Name: "end", Phase: lang.Load, Kind: lang.Time, Default: "none", About: "the first instant that may not fire any more"},
		{Name: "count", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "none", About: "runs after which the schedule has ended"},
		{Name: "jitter", Phase: lang.Load, Kind: lang.Duration, Default: "none", About: "each fire is delayed by less than this"},
		{Name: "splay", Phase: lang.Load, Kind: lang.String, OneOf: []string{"hash"}, Default: "none", About: "with jitter: one delay for all times of the trigger"},
		{Name: "misfire_after", Phase: lang.Load, Kind: lang.Duration, Default: `"1m"`, About: "how late a fire may be and still be on time"},
		{Name: "catch_up", Phase: lang.Load, Kind: lang.String, OneOf: []string{"latest", "none", "all"}, Default: `"latest"`, About: "which of the times that were missed fire"},
		{Name: "catch_up_window", Phase: lang.Load, Kind: lang.Duration, Default: `"1h"`, About: "how long ago they may have been due"},
		{Name: "catch_up_max", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 10000", Default: "100", About: "how many of them fire, the latest"},
		{Name: "overlap", Phase: lang.Load, Kind: lang.String, OneOf: overlapValues(), Default: `"skip"`, About: "what becomes of a fire while an earlier run is going"},
		{Name: "overlap_max", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 10000", Default: "100", About: `with overlap "queue" or "node": runs that wait`},
		{Name: "pause_after", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "never", About: "failed runs in a row that pause the schedule"},
	},
}

var messageSchema = &lang.Schema{
	Title: "a message trigger",
	Arguments: []lang.Argument{
		{Name: "subject", Phase: lang.Load, Kind: lang.String, Required: true, About: "subject on NATS, with * and > as there"},
		{Name: "stream", Phase: lang.Load, Kind: lang.String, Default: "none: core NATS", About: "JetStream stream to read; with durable"},
		{Name: "durable", Phase: lang.Load, Kind: lang.String, Default: "none", About: "name of the stream's consumer; with stream"},
		{Name: "payload", Phase: lang.Own, Kind: lang.Type, Default: "any", About: "what messages it takes: object({ id = string, note = optional(string) }), …"},
		{Name: "filter", Phase: lang.Fire, Kind: lang.Bool, Default: "true", About: "a message for which it is false starts no run"},
		{Name: "params", Phase: lang.Fire, Kind: lang.Object, Default: "none", About: "values of params"},
		{Name: "enabled", Phase: lang.Load, Kind: lang.Bool, Default: "true", About: "false keeps the trigger from firing"},
		{Name: "dedupe_key", Later: true},
	},
}

var followSchema = &lang.Schema{
	Title: "a flow trigger",
	Arguments: []lang.Argument{
		{Name: "after", Phase: lang.Load, Kind: lang.Flow, Required: true, About: "flow.NAME of the same directory, whose runs it follows"},
		{Name: "on", Phase: lang.Load, Kind: lang.Strings, OneOf: endStates, Default: `["succeeded"]`, About: "which ends of its runs start one"},
		{Name: "filter", Phase: lang.Fire, Kind: lang.Bool, Default: "true", About: "an end for which it is false starts no run"},
		{Name: "params", Phase: lang.Fire, Kind: lang.Object, Default: "none", About: "values of params"},
		{Name: "enabled", Phase: lang.Load, Kind: lang.Bool, Default: "true", About: "false keeps the trigger from firing"},
	},
}

// endStates are the states in which runs end.
var endStates = []string{string(run.Succeeded), string(run.Failed), string(run.Canceled)}

// triggerKinds are the first labels of trigger blocks; nil for later ones.
var triggerKinds = map[string]*lang.Schema{
	"schedule": scheduleSchema,
	"message":  messageSchema,
	"webhook":  nil,
	"flow":     followSchema,
}

var concurrencySchema = &lang.Schema{
	Title: "a concurrency block",
	Arguments: []lang.Argument{
		{Name: "limit", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "1", About: "runs that are under way at once"},
		{Name: "key", Phase: lang.Key, Kind: lang.Scalar, Default: "none: one limit for all runs", About: "each value of it has the limit for itself"},
		{Name: "on_limit", Phase: lang.Load, Kind: lang.String, OneOf: []string{string(LimitQueue), string(LimitSkip), string(LimitCancelRunning)}, Default: `"queue"`, About: "what becomes of a run over the limit"},
	},
}

var taskSchema = &lang.Schema{
	Title: "a task block",
	Arguments: []lang.Argument{
		{Name: "plugin", Phase: lang.LoadPlugin, Kind: lang.Plugin, Either: true, Default: "none: the task has flow", About: "plugin.NAME, or the path of a module"},
		{Name: "flow", Phase: lang.Load, Kind: lang.Flow, Either: true, Default: "none: the task has plugin", About: "flow.NAME of the same directory: a sub-flow"},
		{Name: "function", Phase: lang.Load, Kind: lang.String, Default: "the only one, or main", About: "function of the module"},
		{Name: "input", Phase: lang.Run, Kind: lang.AnyValue, Default: "null", About: "given to the function as JSON; to a flow, its params by name"},
		{Name: "config", Phase: lang.Run, Kind: lang.Object, Default: "the plugin's", About: "laid over the plugin's config"},
		{Name: "when", Phase: lang.Run, Kind: lang.Bool, Default: "true", About: "false: the task is skipped"},
		{Name: "after", Phase: lang.Own, Kind: lang.Tasks, Default: "none", About: "order without data: [task.a, wait.b]"},
		{Name: "run_on", Phase: lang.Load, Kind: lang.String, OneOf: []string{string(RunOnSuccess), string(RunOnFailure), string(RunAlways)}, Default: `"success"`, About: "which ends of the tasks before it let it run"},
		{Name: "timeout", Phase: lang.Load, Kind: lang.Duration, Default: "the defaults'; none for a flow", About: "of one attempt"},
		{Name: "heartbeat", Phase: lang.Load, Kind: lang.Duration, Default: "none", About: "from 1s: how long an attempt may report neither progress nor a heartbeat"},
		{Name: "retries", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 0 to 99999", Default: "the defaults'; 0 for a flow", About: "further attempts after the first; short for retry { attempts = n + 1 }"},
		{Name: "limit", Phase: lang.Own, Kind: lang.Limits, Default: "none", About: "limit.NAME, or a list of these: what its attempts count for"},
		{Name: "priority", Phase: lang.Load, Kind: lang.Integer, Bounds: "from -100 to 100", Default: "the flow's", About: "of the attempts that wait, the highest goes first"},
		{Name: "description", Phase: lang.Load, Kind: lang.String, About: "for readers"},
		{Name: "for_each", Phase: lang.Run, Kind: lang.Items, Default: "none", About: "the task is run for each item of this list, set or object"},
		{Name: "max_parallel", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "none", About: "with for_each: items that are under way at once"},
		{Name: "on_error", Phase: lang.Load, Kind: lang.String, OneOf: []string{onErrorFail, onErrorContinue}, Default: `"fail"`, About: "continue: for the run and what comes after, a failure of the task is none"},
	},
	Blocks: []lang.Block{
		{Name: "retry", Body: retrySchema, Single: true, About: "when and how often to try again"},
		{Name: "limits", Body: limitsSchema, Single: true, About: "bounds of each call, before the plugin's"},
		{Name: "grant", Body: reachspec.Grant, Single: true, About: "what the task may use, of what its plugin may"},
		{Name: "cache", Later: true},
		{Name: "placement", Later: true},
	},
	Foreign: map[string]string{
		"depends_on": writeAfter, "dependencies": writeAfter, "needs": writeAfter, "requires": writeAfter, "upstream": writeAfter,
		"command": writePlugin, "cmd": writePlugin, "script": writePlugin, "run": writePlugin, "shell": writePlugin, "exec": writePlugin,
		"bash": writePlugin, "entrypoint": writePlugin, "uses": writePlugin, "source": writePlugin, "module": writePlugin, "wasm": writePlugin,
		"image": writeNoImage, "container": writeNoImage, "docker": writeNoImage,
		"env": writeNoEnv, "environment": writeNoEnv,
		"args": writeInput, "arguments": writeInput, "params": writeInput, "parameters": writeInput, "with": writeInput, "inputs": writeInput,
		"if": writeWhen, "condition": writeWhen, "unless": writeWhen,
		"count": writeForEach, "loop": writeForEach, "foreach": writeForEach, "matrix": writeForEach, "with_items": writeForEach,
		"step": writeGroup, "steps": writeGroup, "parallel": writeGroup,
		"max_retries": writeRetries, "retry_count": writeRetries, "attempts": writeRetries,
		"timeout_seconds": writeTimeout, "timeout_minutes": writeTimeout,
		"continue_on_error": writeOnError, "allow_failure": writeOnError, "ignore_errors": writeOnError,
		"on_failure": writeHook, "cron": writeSchedule, "schedule": writeSchedule,
	},
}

var waitSchema = &lang.Schema{
	Title: "a wait block",
	Arguments: []lang.Argument{
		{Name: "duration", Phase: lang.Run, Kind: lang.Duration, About: "ends after it; exactly one of duration, until, subject, approval, signal"},
		{Name: "until", Phase: lang.Run, Kind: lang.Time, About: "ends at this instant, at once when it has passed"},
		{Name: "subject", Phase: lang.Run, Kind: lang.String, About: "ends with a message on this subject on NATS"},
		{Name: "approval", Phase: lang.Run, Kind: lang.String, About: "what is to be approved; ends with flowhost approve"},
		{Name: "signal", Phase: lang.Load, Kind: lang.Bool, Default: "false", About: "true: ends with flowhost signal"},
		{Name: "timeout", Phase: lang.Load, Kind: lang.Duration, Default: "none", About: "after which the wait fails"},
		{Name: "when", Phase: lang.Run, Kind: lang.Bool, Default: "true", About: "false: the wait is skipped"},
		{Name: "after", Phase: lang.Own, Kind: lang.Tasks, Default: "none", About: "order without data: [task.a, wait.b]"},
		{Name: "run_on", Phase: lang.Load, Kind: lang.String, OneOf: []string{string(RunOnSuccess), string(RunOnFailure), string(RunAlways)}, Default: `"success"`, About: "after which ends of what is before it the wait starts"},
		{Name: "description", Phase: lang.Load, Kind: lang.String, About: "for readers"},
	},
	Foreign: orderWords,
}

var outputSchema = &lang.Schema{
	Title: "an output block",
	Arguments: []lang.Argument{
		{Name: "value", Phase: lang.Run, Kind: lang.AnyValue, Required: true, About: "what the run gives under this name"},
		{Name: "description", Phase: lang.Load, Kind: lang.String, About: "for readers"},
		{Name: "sensitive", Later: true},
	},
}

var onFailureSchema = &lang.Schema{
	Title:  "an on_failure block",
	Blocks: groupSchema.Blocks,
}

var onSuccessSchema = &lang.Schema{
	Title:  "an on_success block",
	Blocks: groupSchema.Blocks,
}

var finallySchema = &lang.Schema{
	Title:     "a finally block",
	Arguments: []lang.Argument{{Name: "timeout", Phase: lang.Load, Kind: lang.Duration, Default: `"5m"`, About: "of all its tasks together"}},
	Blocks:    groupSchema.Blocks,
}

// hooks are the tables of the parts that have their own blocks.
var hooks = map[Part]*lang.Schema{
	PartOnFailure: onFailureSchema,
	PartOnSuccess: onSuccessSchema,
	PartFinally:   finallySchema,
}
