package flows

import "github.com/flowhost/flowhost/run"

// The words of test files, as those of flow files.

var testFileWords = &words{
	title: "a test file",
	blocks: []block{
		{name: "test", labels: aName, body: testWords, about: "a flow that is run in virtual time, and what must come of it"},
		{name: "mock", labels: []string{"task"}, body: mockWords, about: "a mock for the tests of the file that have none of the task"},
		{name: "mock_plugin", labels: []string{"plugin"}, body: mockWords, about: "a mock for those that have none of the plugin"},
	},
}

var testWords = &words{
	title: "a test block",
	arguments: []argument{
		{name: "flow", at: deployed, kind: aText, preset: "the module's only one", about: "name of the flow, as its block has it"},
		{name: "trigger", at: deployed, kind: aText, preset: "none: asked for by name", about: "trigger of the flow that starts runs"},
		{name: "params", at: deployed, kind: anObject, preset: "none", about: "values of params"},
		{name: "payload", at: deployed, kind: anyValue, preset: "none", about: "of the trigger: the message"},
		{name: "at", at: deployed, kind: aTime, preset: `"2026-01-01T00:00:00Z"`, about: "virtual time at the beginning"},
		{name: "until", at: deployed, kind: aDuration, preset: "until the run has ended", about: "how much virtual time passes; required for schedules"},
	},
	blocks: []block{
		{name: "mock", labels: []string{"task"}, body: mockWords, about: "what the calls of a task do, in place of its plugin"},
		{name: "mock_plugin", labels: []string{"plugin"}, body: mockWords, about: "the same for all tasks of a plugin that have no mock"},
		{name: "signal", labels: []string{"wait"}, body: signalWords, about: "ends a wait for a signal or a message"},
		{name: "approve", labels: []string{"wait"}, body: approveWords, about: "decides a wait for an approval"},
		{name: "assert", body: assertWords, about: "what must hold at the end"},
	},
}

var mockWords = &words{
	title: "a mock block",
	arguments: []argument{
		{name: "output", at: mocking, kind: anyValue, preset: "null", about: "what a call gives that succeeds"},
		{name: "takes", at: mocking, kind: aDuration, preset: "no time", about: "virtual time until a call ends"},
		{name: "fail", at: mocking, kind: anObject, preset: "none", about: "the failure: message, code, retryable, retry_after, details; null is none"},
		{name: "outcome", at: deployed, kind: aText, oneOf: outcomeWords(), preset: `"failed", with fail`, about: "how a call ends that fails"},
		{name: "times", at: deployed, kind: aWhole, bounds: "1 or more", preset: "always, with fail or outcome", about: "attempts that fail before one succeeds"},
		{name: "hangs", at: deployed, kind: aBool, preset: "false", about: "calls end only when they are canceled or their time is up"},
	},
}

var signalWords = &words{
	title: "a signal block",
	arguments: []argument{
		{name: "after", at: deployed, kind: aDuration, preset: answeredAtOnce, about: answeredAfter},
		{name: "payload", at: deployed, kind: anyValue, preset: "null", about: "what the signal or the message brings"},
	},
}

var approveWords = &words{
	title: "an approve block",
	arguments: []argument{
		{name: "after", at: deployed, kind: aDuration, preset: answeredAtOnce, about: answeredAfter},
		{name: "approved", at: deployed, kind: aBool, preset: "true", about: "false refuses it"},
		{name: "by", at: deployed, kind: aText, preset: "none", about: "who says so"},
		{name: "reason", at: deployed, kind: aText, preset: "none", about: "why"},
		{name: "payload", at: deployed, kind: anyValue, preset: "null", about: "what else there is to say"},
	},
}

const (
	answeredAtOnce = "as soon as it waits"
	answeredAfter  = "virtual time since the start of the run"
)

var assertWords = &words{
	title: "an assert block",
	arguments: []argument{
		{name: "condition", at: asserting, kind: aBool, required: true, about: "must be true at the end"},
		{name: "error_message", at: asserting, kind: aText, preset: "none", about: "shown when it is not"},
	},
}

// outcomes are how a mocked call may fail.
var outcomes = []run.Outcome{run.OutcomeFailed, run.OutcomeTimedOut, run.OutcomeTrapped, run.OutcomeRejected, run.OutcomeDenied}

func outcomeWords() []string {
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
