package flows

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
)

// argument is a word of the form name = expression.
type argument struct {
	name     string
	at       moment
	required bool
	later    bool // known to the full language, not to this version
}

// block is a word of the form name "label" { … }.
type block struct {
	name   string
	labels []string
	body   *words // nil for later ones and for free attributes
	single bool   // at most one in its parent
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

var name = []string{"name"}

var fileWords = &words{
	title: "a flow file",
	blocks: []block{
		{name: "variable", labels: name, body: variableWords},
		{name: "locals"},
		{name: "plugin", labels: name, body: pluginWords},
		{name: "defaults", body: defaultsWords, single: true},
		{name: "flow", labels: name, body: flowWords},
		{name: "secret", labels: name, later: true},
		{name: "limit", labels: name, later: true},
	},
}

var variableWords = &words{
	title: "a variable block",
	arguments: []argument{
		{name: "type", at: apart},
		{name: "default", at: constant},
		{name: "description", at: constant},
		{name: "sensitive", at: constant},
	},
	blocks: []block{{name: "validation", body: validationWords}},
}

var validationWords = &words{
	title: "a validation block",
	arguments: []argument{
		{name: "condition", at: apart, required: true},
		{name: "error_message", at: apart, required: true},
	},
}

var pluginWords = &words{
	title: "a plugin block",
	arguments: []argument{
		{name: "source", at: deployed, required: true},
		{name: "digest", at: deployed},
		{name: "config", at: deployed},
		{name: "abi", later: true},
	},
	blocks: []block{
		{name: "limits", body: limitsWords, single: true},
		{name: "grant", body: grantWords, single: true},
		{name: "pool", later: true},
	},
}

var grantWords = &words{
	title: "a grant block",
	arguments: []argument{
		{name: "files", at: deployed},
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
		{name: "memory", at: deployed},
		{name: "output", at: deployed},
		{name: "log", at: deployed},
		{name: "fuel", at: deployed},
	},
}

var defaultsWords = &words{
	title: "a defaults block",
	arguments: []argument{
		{name: "timeout", at: deployed},
		{name: "retries", at: deployed},
	},
	blocks: []block{{name: "retry", body: retryWords, single: true}},
}

var retryWords = &words{
	title: "a retry block",
	arguments: []argument{
		{name: "attempts", at: deployed},
		{name: "backoff", at: deployed},
		{name: "delay", at: deployed},
		{name: "max", at: deployed},
		{name: "jitter", at: deployed},
		{name: "when", at: retrying},
	},
}

var flowWords = &words{
	title: "a flow block",
	arguments: []argument{
		{name: "description", at: deployed},
		{name: "labels", at: deployed},
		{name: "timeout", at: deployed},
		{name: "priority", at: deployed},
	},
	blocks: []block{
		{name: "param", labels: name, body: variableWords},
		{name: "trigger", labels: []string{"kind", "name"}},
		{name: "concurrency", body: concurrencyWords, single: true},
		{name: "locals"},
		{name: "task", labels: name, body: taskWords},
		{name: "output", labels: name, body: outputWords},
		{name: "defaults", body: defaultsWords, single: true},
		{name: "on_failure", body: onFailureWords, single: true},
		{name: "on_success", body: onSuccessWords, single: true},
		{name: "finally", body: finallyWords, single: true},
		{name: "group", labels: name, later: true},
		{name: "wait", labels: name, later: true},
	},
}

var scheduleWords = &words{
	title: "a schedule trigger",
	arguments: []argument{
		{name: "cron", at: deployed},
		{name: "every", at: deployed},
		{name: "timezone", at: deployed},
		{name: "params", at: filtering},
		{name: "enabled", at: deployed},
		{name: "at", at: deployed},
		{name: "calendar", at: deployed},
		{name: "offset", at: deployed},
		{name: "dst", at: deployed},
		{name: "day_match", at: deployed},
		{name: "start", at: deployed},
		{name: "end", at: deployed},
		{name: "count", at: deployed},
		{name: "jitter", at: deployed},
		{name: "splay", at: deployed},
		{name: "misfire_after", at: deployed},
		{name: "catch_up", at: deployed},
		{name: "catch_up_window", at: deployed},
		{name: "catch_up_max", at: deployed},
		{name: "overlap", at: deployed},
		{name: "overlap_max", at: deployed},
		{name: "pause_after", at: deployed},
	},
}

var messageWords = &words{
	title: "a message trigger",
	arguments: []argument{
		{name: "subject", at: deployed, required: true},
		{name: "stream", at: deployed},
		{name: "durable", at: deployed},
		{name: "filter", at: filtering},
		{name: "params", at: filtering},
		{name: "enabled", at: deployed},
		{name: "dedupe_key", later: true},
	},
}

// triggerKinds are the first labels of trigger blocks; nil for later ones.
var triggerKinds = map[string]*words{
	"schedule": scheduleWords,
	"message":  messageWords,
	"webhook":  nil,
	"flow":     nil,
}

var concurrencyWords = &words{
	title: "a concurrency block",
	arguments: []argument{
		{name: "limit", at: deployed},
		{name: "key", at: keying},
		{name: "on_limit", at: deployed},
	},
}

var taskWords = &words{
	title: "a task block",
	arguments: []argument{
		{name: "plugin", at: pluginRef, required: true},
		{name: "function", at: deployed},
		{name: "input", at: running},
		{name: "config", at: running},
		{name: "when", at: running},
		{name: "after", at: apart},
		{name: "run_on", at: deployed},
		{name: "timeout", at: deployed},
		{name: "retries", at: deployed},
		{name: "priority", at: deployed},
		{name: "description", at: deployed},
		{name: "flow", later: true},
		{name: "for_each", later: true},
		{name: "max_parallel", later: true},
		{name: "on_error", later: true},
		{name: "limit", later: true},
	},
	blocks: []block{
		{name: "retry", body: retryWords, single: true},
		{name: "limits", body: limitsWords, single: true},
		{name: "grant", body: grantWords, single: true},
		{name: "cache", later: true},
		{name: "placement", later: true},
	},
}

var outputWords = &words{
	title: "an output block",
	arguments: []argument{
		{name: "value", at: running, required: true},
		{name: "description", at: deployed},
		{name: "sensitive", later: true},
	},
}

var onFailureWords = &words{
	title:  "an on_failure block",
	blocks: []block{{name: "task", labels: name, body: taskWords}},
}

var onSuccessWords = &words{
	title:  "an on_success block",
	blocks: []block{{name: "task", labels: name, body: taskWords}},
}

var finallyWords = &words{
	title:     "a finally block",
	arguments: []argument{{name: "timeout", at: deployed}},
	blocks:    []block{{name: "task", labels: name, body: taskWords}},
}

// hooks are the words of the parts that are blocks of their own.
var hooks = map[Part]*words{
	PartOnFailure: onFailureWords,
	PartOnSuccess: onSuccessWords,
	PartFinally:   finallyWords,
}
