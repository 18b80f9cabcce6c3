package lang

import "strings"

// Kind is what value an argument takes, in the words of the documentation. An
// object that is made of run values is checked when it is evaluated, all others
// while loading.
type Kind string

const (
	AnyValue  Kind = "any value"
	String    Kind = "text"
	Bool      Kind = "bool"
	Number    Kind = "number"
	Integer   Kind = "whole number"
	Duration  Kind = "duration" // "1h30m"
	Size      Kind = "size"     // bytes: "64KiB"
	Time      Kind = "time"     // RFC 3339
	Scalar    Kind = "text, number or bool"
	Object    Kind = "object"
	StringMap Kind = "map of texts"
	Type      Kind = "type"
	Plugin    Kind = "plugin or text"
	Tasks     Kind = "list of tasks"
	Limits    Kind = "limit or list of limits"
	Items     Kind = "list, set or object"
	Flow      Kind = "flow or text"
	Strings   Kind = "list of texts"

	Secret      Kind = "secret"                  // secret.NAME, which has no value in flow files
	SecretText  Kind = "text or secret"          //
	SecretTexts Kind = "map of texts or secrets" //
	Secrets     Kind = "map of secrets"          //
	Connections Kind = "list of connections"     // connection.NAME
)

// Kinds are all of them, for those who must know each.
var Kinds = []Kind{
	AnyValue, String, Bool, Number, Integer, Duration, Size, Time, Scalar, Object, StringMap, Type, Plugin, Flow, Tasks, Limits, Items, Strings,
	Secret, SecretText, SecretTexts, Secrets, Connections,
}

// Phrase spells a kind for messages: "a map of strings".
func (k Kind) Phrase() string {
	switch k {
	case AnyValue:
		return string(k)
	case Object:
		return "an " + string(k)
	case Integer:
		return "an integer"
	}
	return "a " + messageWords.Replace(string(k))
}

// messageWords are what messages use for the words of the kinds.
var messageWords = strings.NewReplacer("texts", "strings", "text", "string")
