// Package jsonschema describes the JSON values that can be in a place: a [Shape], made
// from a JSON Schema, a cty type or a value.
//
// A shape may describe more values than there are, never fewer: what cannot be known is
// left open, so that a shape never speaks against a value that is right. [FindMismatch]
// compares two of them, [TypeText] writes one as flow files write types, and [Check]
// finds what in a schema cannot be what its author meant.
package jsonschema
