package flows

import (
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

// roots is a set of the names with which references begin.
type roots uint16

const (
	rootVar roots = 1 << iota
	rootLocal
	rootFlow
	rootPlugin
	rootTrigger
	rootParam
	rootRun
	rootTask
	rootWait
	rootError
	rootGroup
	rootEach
	rootLimit
	rootConnection
	rootSecret

	runRoots = rootTrigger | rootParam | rootRun | rootTask | rootError | rootGroup | rootWait | rootEach

	// settledRoots are followed by a name and an attribute.
	settledRoots = rootTask | rootGroup | rootWait
)

// root is one beginning of references.
type root struct {
	name string
	bit  roots
	has  []string // its attributes, for roots whose names are not declared
}

// rootWords are all beginnings of references of the language.
var rootWords = []root{
	{name: "var", bit: rootVar},
	{name: "local", bit: rootLocal},
	{name: "plugin", bit: rootPlugin},
	{name: "limit", bit: rootLimit},
	{name: "connection", bit: rootConnection},
	{name: "secret", bit: rootSecret},
	{name: "flow", bit: rootFlow, has: []string{"name"}},
	{name: "param", bit: rootParam},
	{name: "trigger", bit: rootTrigger, has: []string{"headers", "kind", "name", "payload", "subject", "time"}},
	{name: "run", bit: rootRun, has: []string{"attempt", "flow", "id", "labels", "previous_success_at", "scheduled_at", "started_at"}},
	{name: "task", bit: rootTask},
	{name: "wait", bit: rootWait},
	{name: "error", bit: rootError, has: []string{"attempt", "code", "message", "outcome", "task"}},
	{name: "group", bit: rootGroup},
	{name: "each", bit: rootEach, has: []string{"index", "key", "value"}},
}

// taskAttributes are what a reference to a task can end in.
var taskAttributes = []string{"attempts", "duration", "error", "errors", "output", "state"}

// groupAttributes are what a reference to a group can end in.
var groupAttributes = []string{"error", "output", "state"}

func rootWord(name string) *root {
	for i := range rootWords {
		if rootWords[i].name == name {
			return &rootWords[i]
		}
	}
	return nil
}

// attemptAttributes are those of error in retry { when }: the end of an attempt.
var attemptAttributes = []string{"attempt", "code", "details", "message", "outcome", "retryable"}

// attributes are those that a root has at a phase.
func (r *root) attributes(at lang.Phase) []string {
	if r.bit == rootError && at == lang.Retry {
		return attemptAttributes
	}
	return r.has
}

// usableIn is what an argument evaluated in a phase may refer to.
func usableIn(m lang.Phase, hook bool) roots {
	switch m {
	case lang.Load:
		return rootVar | rootLocal | rootFlow
	case lang.LoadPlugin:
		return usableIn(lang.Load, false) | rootPlugin
	case lang.Fire:
		return usableIn(lang.Load, false) | rootTrigger
	case lang.Key:
		return usableIn(lang.Fire, false) | rootParam
	case lang.Run:
		usable := usableIn(lang.Key, false) | rootRun | settledRoots
		if hook {
			usable |= rootError
		}
		return usable
	case lang.Retry:
		return usableIn(lang.Run, true)
	}
	return 0
}

// list is a set in the order of the table.
func (s roots) list() []string {
	names := []string{}
	for _, r := range rootWords {
		if s&r.bit != 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// names spells a set for messages: "var, local and trigger".
func (s roots) names() string { return diag.Join(s.list(), "and") }
