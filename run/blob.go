package run

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
)

// BlobSize is the size from which on JSON is stored apart from the event that
// holds it, under its digest, in bytes.
const BlobSize = 64 << 10

// Blob is JSON that is stored apart.
type Blob struct {
	Name string // its digest, 64 hexadecimal digits
	Data json.RawMessage
}

// A decoded event has, in place of JSON that is stored apart, a reference: a
// zero byte, which no JSON begins with, the SHA-256 digest and the size.
const refMark = 0x00

func newRef(data []byte) (name string, ref json.RawMessage) {
	digest := sha256.Sum256(data)
	ref = append(append(ref, refMark), digest[:]...)
	return hex.EncodeToString(digest[:]), binary.AppendUvarint(ref, uint64(len(data)))
}

// BlobName gives the name of the blob to which JSON of a decoded event refers,
// and false for JSON that is all there.
func BlobName(data json.RawMessage) (string, bool) {
	if len(data) < 1+sha256.Size || data[0] != refMark {
		return "", false
	}
	return hex.EncodeToString(data[1 : 1+sha256.Size]), true
}

// IsBlob reports whether data is what the name stands for.
func IsBlob(name string, data []byte) bool {
	digest := sha256.Sum256(data)
	return name == hex.EncodeToString(digest[:])
}

// payload writes JSON that comes from outside and may be large.
func (e *encoder) payload(data json.RawMessage) {
	if len(data) < BlobSize {
		e.bytes(data)
		return
	}
	name, ref := newRef(data)
	e.bytes(ref)
	e.blobs = append(e.blobs, Blob{name, data})
}

// Payloads calls f with the place of each JSON of the event that may be large.
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

// Payloads calls f with the place of each JSON of the run that may be large.
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
