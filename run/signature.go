package run

import "encoding/json"

// Signature is what is known of a plugin's module before any of its functions
// is called.
type Signature struct {
	Digest    string              `json:"digest"` // "sha256:..." of the module's bytes
	ABI       string              `json:"abi"`    // "flowhost" or "wasi"
	Functions []FunctionSignature `json:"functions"`
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
