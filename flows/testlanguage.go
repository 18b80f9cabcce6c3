package flows

import (
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// The tables of test files, as those of flow files in language.go.

var testFileSchema = &lang.Schema{
	Title: "a test file",
	Blocks: []lang.Block{
		{Name: "test", Labels: aName, Body: testSchema, About: "a flow that is run in virtual time, and what must come of it"},
		{Name: "mock", Labels: []string{"task"}, Body: mockSchema, About: "a mock for the tests of the file that have none of the task"},
		{Name: "mock_plugin", Labels: []string{"plugin"}, Body: mockSchema, About: "a mock for those that have none of the plugin"},
	},
}

var testSchema = &lang.Schema{
	Title: "a test block",
	Arguments: []lang.Argument{
		{Name: "flow", Phase: lang.Load, Kind: lang.String, Default: "the module's only one", About: "name of the flow, as its block has it"},
		{Name: "trigger", Phase: lang.Load, Kind: lang.String, Default: "none: asked for by name", About: "trigger of the flow that starts runs"},
		{Name: "params", Phase: lang.Load, Kind: lang.Object, Default: "none", About: "values of params"},
		{Name: "payload", Phase: lang.Load, Kind: lang.AnyValue, Default: "none", About: "of the trigger: the message"},
		{Name: "at", Phase: lang.Load, Kind: lang.Time, Default: `"2026-01-01T00:00:00Z"`, About: "virtual time at the beginning"},
		{Name: "until", Phase: lang.Load, Kind: lang.Duration, Default: "until the run has ended", About: "how much virtual time passes; required for schedules"},
	},
	Blocks: []lang.Block{
		{Name: "mock", Labels: []string{"task"}, Body: mockSchema, About: "what the calls of a task do, in place of its plugin"},
		{Name: "mock_plugin", Labels: []string{"plugin"}, Body: mockSchema, About: "the same for all tasks of a plugin that have no mock"},
		{Name: "signal", Labels: []string{"wait"}, Body: signalSchema, About: "ends a wait for a signal or a message"},
		{Name: "approve", Labels: []string{"wait"}, Body: approveSchema, About: "decides a wait for an approval"},
		{Name: "assert", Body: assertSchema, About: "what must hold at the end"},
	},
}

var mockSchema = &lang.Schema{
	Title: "a mock block",
	Arguments: []lang.Argument{
		{Name: "output", Phase: lang.Mock, Kind: lang.AnyValue, Default: "null", About: "what a call gives that succeeds"},
		{Name: "takes", Phase: lang.Mock, Kind: lang.Duration, Default: "no time", About: "virtual time until a call ends"},
		{Name: "fail", Phase: lang.Mock, Kind: lang.Object, Default: "none", About: "the failure: message, code, retryable, retry_after, details; null is none"},
		{Name: "outcome", Phase: lang.Load, Kind: lang.String, OneOf: outcomeValues(), Default: `"failed", with fail`, About: "how a call ends that fails"},
		{Name: "times", Phase: lang.Load, Kind: lang.Integer, Bounds: "1 or more", Default: "always, with fail or outcome", About: "attempts that fail before one succeeds"},
		{Name: "hangs", Phase: lang.Load, Kind: lang.Bool, Default: "false", About: "calls end only when they are canceled or their time is up"},
	},
}

var signalSchema = &lang.Schema{
	Title: "a signal block",
	Arguments: []lang.Argument{
		{Name: "after", Phase: lang.Load, Kind: lang.Duration, Default: answeredAtOnce, About: answeredAfter},
		{Name: "payload", Phase: lang.Load, Kind: lang.AnyValue, Default: "null", About: "what the signal or the message brings"},
	},
}

var approveSchema = &lang.Schema{
	Title: "an approve block",
	Arguments: []lang.Argument{
		{Name: "after", Phase: lang.Load, Kind: lang.Duration, Default: answeredAtOnce, About: answeredAfter},
		{Name: "approved", Phase: lang.Load, Kind: lang.Bool, Default: "true", About: "false refuses it"},
		{Name: "by", Phase: lang.Load, Kind: lang.String, Default: "none", About: "who decides"},
		{Name: "reason", Phase: lang.Load, Kind: lang.String, Default: "none", About: "why"},
		{Name: "payload", Phase: lang.Load, Kind: lang.AnyValue, Default: "null", About: "further data of the decision"},
	},
}

const (
	answeredAtOnce = "as soon as it waits"
	answeredAfter  = "virtual time since the start of the run"
)

var assertSchema = &lang.Schema{
	Title: "an assert block",
	Arguments: []lang.Argument{
		{Name: "condition", Phase: lang.Assert, Kind: lang.Bool, Required: true, About: "must be true at the end"},
		{Name: "error_message", Phase: lang.Assert, Kind: lang.String, Default: "none", About: "shown when it is not"},
	},
}

// outcomes are how a mocked call may fail.
var outcomes = []run.Outcome{run.OutcomeFailed, run.OutcomeTimedOut, run.OutcomeTrapped, run.OutcomeRejected, run.OutcomeDenied}

func outcomeValues() []string {
	var words []string
	for _, o := range outcomes {
		words = append(words, string(o))
	}
	return words
}

// What expressions of tests may refer to beside var and local.
var (
	mockRoots   = []string{"attempt", "config", "each", "input", "local", "var"}
	assertRoots = []string{"group", "local", "run", "runs", "task", "var", "wait"}

	testedRunAttributes = []string{
		"created_at", "duration", "error", "finished_at", "flow", "id", "output", "params", "scheduled_at", "started_at", "state",
	}
	testedItemAttributes  = []string{"attempts", "duration", "error", "finished_at", "input", "output", "started_at", "state"}
	testedTaskAttributes  = append([]string{"errors", "items"}, testedItemAttributes...)
	testedWaitAttributes  = []string{"duration", "error", "finished_at", "payload", "started_at", "state"}
	testedGroupAttributes = groupAttributes
)
