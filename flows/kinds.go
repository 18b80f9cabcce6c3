package flows

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
)

// kind says what value an argument takes, in the words of the documentation. An
// object that is made of run values is checked when it is evaluated, all others
// while loading.
type kind string

const (
	anyValue   kind = "any value"
	aText      kind = "text"
	aBool      kind = "bool"
	aNumber    kind = "number"
	aWhole     kind = "whole number"
	aDuration  kind = "duration" // "1h30m"
	aSize      kind = "size"     // bytes: "64KiB"
	aTime      kind = "time"     // RFC 3339
	aScalar    kind = "text, number or bool"
	anObject   kind = "object"
	texts      kind = "map of texts"
	aType      kind = "type"
	aPlugin    kind = "plugin or text"
	someTasks  kind = "list of tasks"
	someLimits kind = "limit or list of limits"
	someItems  kind = "list, set or object"
	aFlow      kind = "flow or text"
	someWords  kind = "list of texts"
)

// argumentKinds are all of them, for those who must know each.
var argumentKinds = []kind{
	anyValue, aText, aBool, aNumber, aWhole, aDuration, aSize, aTime, aScalar, anObject, texts, aType, aPlugin, aFlow, someTasks, someLimits, someItems, someWords,
}

// phrase spells a kind for messages: "a map of texts".
func (k kind) phrase() string {
	switch k {
	case anyValue:
		return string(k)
	case anObject:
		return "an " + string(k)
	}
	return "a " + string(k)
}

// misfit says why a value cannot be converted: what it is, or which part of it is
// wrong.
func misfit(v cty.Value, err error) string {
	if fault := (cty.PathError{}); errors.As(err, &fault) && len(fault.Path) > 0 {
		return ": " + conversionError(err)
	}
	if v.IsNull() {
		return ", and this is null"
	}
	switch v.Type() {
	case cty.String:
		return ", and this is a text"
	case cty.Number:
		return ", and this is a number"
	case cty.Bool:
		return ", and this is a bool"
	case pluginType:
		return ", and this is a plugin"
	}
	return ", and this is " + kindOf(v)
}

// phases are the names of moments in the documentation.
var phases = map[moment]string{
	constant: "constant", deployed: "load", pluginRef: "load", filtering: "fire", keying: "key", running: "run", retrying: "retry", apart: "own", mocking: "mock", asserting: "assert",
}
