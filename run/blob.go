package run

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
)

// BlobSize is the size in bytes from which on JSON is stored separately from the event
// that contains it, under its digest.
const BlobSize = 64 << 10

// Blob is JSON that is stored separately.
type Blob struct {
	Name string // its digest, 64 hexadecimal digits
	Data json.RawMessage
}

// refMark begins a reference, which replaces JSON that is stored separately. No JSON
// begins with a zero byte. The SHA-256 digest and the size follow.
const refMark = 0x00

// NewBlob returns the blob of JSON and the reference that replaces it.
func NewBlob(data json.RawMessage) (b Blob, ref json.RawMessage) {
	digest := sha256.Sum256(data)
	ref = append(append(ref, refMark), digest[:]...)
	ref = binary.AppendUvarint(ref, uint64(len(data)))
	return Blob{hex.EncodeToString(digest[:]), data}, ref
}

// BlobName returns the name of the blob to which JSON of a decoded event refers, and
// false for JSON that is not a reference.
func BlobName(data json.RawMessage) (string, bool) {
	if len(data) < 1+sha256.Size || data[0] != refMark {
		return "", false
	}
	return hex.EncodeToString(data[1 : 1+sha256.Size]), true
}

// IsBlob reports whether data has the digest of the name.
func IsBlob(name string, data []byte) bool {
	digest := sha256.Sum256(data)
	return name == hex.EncodeToString(digest[:])
}

// Payloads calls f with a pointer to each JSON of the event that may be large.
func (e Event) Payloads(f func(*json.RawMessage)) {
	switch d := e.Data.(type) {
	case *Submitted:
		f(&d.Trigger.Payload)
		eachParam(d.Params, f)
		f(&d.Continuation)
	case *TaskReused:
		f(&d.Output)
		f(&d.Items)
	case *TaskExpanded:
		f(&d.Items)
	case *WaitEnded:
		f(&d.Payload)
	case *ChildStarted:
		f(&d.Input)
	case *AttemptStarted:
		f(&d.Input)
		f(&d.Config)
	case *AttemptFinished:
		f(&d.Output)
	case *Finished:
		f(&d.Output)
	}
}

// Payloads calls f with a pointer to each JSON of the run that may be large.
func (r *Run) Payloads(f func(*json.RawMessage)) {
	f(&r.Trigger.Payload)
	eachParam(r.Params, f)
	f(&r.Continuation)
	f(&r.Output)
	for _, t := range r.Tasks {
		f(&t.Input)
		f(&t.Config)
		f(&t.Output)
		f(&t.Items)
	}
}

func eachParam(params map[string]json.RawMessage, f func(*json.RawMessage)) {
	for name, value := range params {
		before := len(value)
		f(&value)
		if len(value) != before {
			params[name] = value
		}
	}
}
