package run

import "encoding/json"

// Signature is what is known of a plugin's module before any of its functions
// is called.
type Signature struct {
	Digest    string              `json:"digest"` // "sha256:..." of the module's bytes
	ABI       string              `json:"abi"`    // "flowhost" or "wasi"
	Functions []FunctionSignature `json:"functions"`
	Wants     []Want              `json:"wants,omitempty"`
}

// Want is something that a plugin wants to be granted, in its author's words.
type Want struct {
	Name string `json:"name"` // the word that grants it in a flow: files
	Why  string `json:"why,omitempty"`
}

// MainFunction is the function that a task calls which names none, where there
// are several.
const MainFunction = "main"

// Default is the function to call when none is named: the only one, or the one
// named [MainFunction]. It is empty when there is neither.
func (s *Signature) Default() string {
	if len(s.Functions) == 1 {
		return s.Functions[0].Name
	}
	for _, f := range s.Functions {
		if f.Name == MainFunction {
			return MainFunction
		}
	}
	return ""
}

// FunctionSignature is one function that tasks can call. The schemas are JSON
// Schema; one that is missing accepts anything.
type FunctionSignature struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"`
}
