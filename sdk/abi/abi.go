// Package abi is the contract between a guest and the host that runs it: the
// import module flowhost:task/v1, the names of exports, the fields of a call,
// error numbers and the JSON shapes that cross the border. Host and SDKs both
// read it from here.
//
// A guest passes a pointer and a length into its own exported memory. Every
// import returns a non-negative number, or a negative error number ([Errno]).
// Data is read in two steps: its size, then the bytes into a buffer that the
// guest gives; the host never calls a guest's allocator.
package abi

import (
	"encoding/json"
	"time"
)

// Module is the name of the import module. The version is part of it: a host
// may offer several.
const Module = "flowhost:task/v1"

// Version is the ABI's version as a manifest states it.
const Version = 1

// Imports of [Module], with their core wasm types.
const (
	ImportSize       = "size"        // (field i32) i32: length of a field in bytes
	ImportRead       = "read"        // (field, ptr, cap i32) i32: copies the field, gives its length; E2BIG when cap is less
	ImportOutput     = "output"      // (ptr, len i32) i32: sets the output, the last one wins; E2BIG over the limit
	ImportFail       = "fail"        // (ptr, len i32) i32: sets a Failure, the last one wins; the call fails, whatever it returns
	ImportLog        = "log"         // (level, msg, msgLen, fields, fieldsLen i32) i32: fields is a JSON object or empty
	ImportTimeLeft   = "time_left"   // () i64: milliseconds until the deadline, -1 without one
	ImportShouldStop = "should_stop" // () i32: 0 as long as the call may continue; once it is canceled, the milliseconds until it is ended, at least 1
)

// Field is a part of the call that a guest can read.
type Field int32

// Fields of a call. While an instance is initialized, by its start function,
// ExportInit or ExportWarmup, there is no call: [ImportSize], [ImportRead],
// [ImportOutput] and [ImportFail] answer EINVAL, ImportTimeLeft -1.
const (
	FieldInput    Field = 0 // JSON
	FieldConfig   Field = 1 // JSON, null when the task has none
	FieldFunction Field = 2 // the name of the function that is called
	FieldIdentity Field = 3 // JSON, an Identity
)

// Exports that the host knows. All names that start with ReservedPrefix are
// reserved; a function is any other export of type () -> i32.
const (
	ReservedPrefix = "flowhost_"
	ExportInvoke   = "flowhost_invoke"   // () i32: runs the function that FieldFunction names
	ExportManifest = "flowhost_manifest" // () i32: writes the Manifest through ImportOutput, without any other effect
	ExportWarmup   = "flowhost_warmup"   // () i32: run once, before the state is kept with which each call begins
	ExportMemory   = "memory"
	ExportInit     = "_initialize"
	ExportStart    = "_start"
)

// ManifestSection is the custom section that holds a Manifest, so that it can
// be read without running anything. It is at most MaxManifest bytes long.
const (
	ManifestSection = "flowhost.manifest"
	MaxManifest     = 64 << 10
)

// AnyCase is a keyword at the root of a JSON Schema in a manifest. With true, the guest
// takes names of fields that differ in case for each other, as encoding/json of Go does.
const AnyCase = "x-any-case"

// ExitTempFail is the exit status with which a command of the wasi ABI reports
// that another attempt may succeed (EX_TEMPFAIL of sysexits.h).
const ExitTempFail = 75

// CodeDenied is the code of a failure by which a guest reports that it was not
// granted what it needs.
const CodeDenied = "denied"

// Errno is an error number, as WASI preview 1 numbers them.
type Errno int32

// Error numbers that imports return, negated.
const (
	E2BIG        Errno = 1
	EACCES       Errno = 2
	EAGAIN       Errno = 6
	EBADF        Errno = 8
	ECANCELED    Errno = 11
	EEXIST       Errno = 20
	EFBIG        Errno = 22
	EHOSTUNREACH Errno = 23
	EINVAL       Errno = 28
	EIO          Errno = 29
	EMFILE       Errno = 33
	ENOENT       Errno = 44
	ENOSPC       Errno = 51
	ETIMEDOUT    Errno = 73
)

// Level is the severity of a log line.
type Level int32

// Levels of log lines.
const (
	LevelDebug Level = 0
	LevelInfo  Level = 1
	LevelWarn  Level = 2
	LevelError Level = 3
)

// String is the level's word: debug, info, warn or error.
func (l Level) String() string {
	switch {
	case l <= LevelDebug:
		return "debug"
	case l == LevelInfo:
		return "info"
	case l == LevelWarn:
		return "warn"
	}
	return "error"
}

// Identity identifies a call for a guest.
type Identity struct {
	Flow           string    `json:"flow"`
	Run            string    `json:"run"`
	Task           string    `json:"task"`
	Key            string    `json:"key,omitempty"` // the item's key in a fan-out
	Attempt        int       `json:"attempt"`       // from 1
	IdempotencyKey string    `json:"idempotency_key"`
	Scheduled      time.Time `json:"scheduled"`
}

// Failure is a guest's report that it did not succeed.
type Failure struct {
	Code         string          `json:"code,omitempty"`
	Message      string          `json:"message"`
	Retryable    bool            `json:"retryable"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Details      json.RawMessage `json:"details,omitempty"`
}

// Manifest describes a plugin.
type Manifest struct {
	ABI          int                `json:"abi"`
	Name         string             `json:"name,omitempty"`
	Version      string             `json:"version,omitempty"`
	Description  string             `json:"description,omitempty"`
	Licence      string             `json:"licence,omitempty"` // an SPDX expression, "Apache-2.0"
	Capabilities []Capability       `json:"capabilities,omitempty"`
	Functions    []ManifestFunction `json:"functions"`
}

// Capability is something that a plugin wants to be granted. To state it grants
// nothing: it informs the people who decide, and flows without a grant block
// are warned of.
type Capability struct {
	Name string `json:"name"`          // the word that grants it in a flow: files
	Why  string `json:"why,omitempty"` // in words for an operator: "reads the price lists"
}

// ManifestFunction is one function of a plugin. The schemas are JSON Schema; one
// that is missing accepts anything. An idempotent function may be called again with
// the same input and idempotency key, and changes nothing more.
type ManifestFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
}
