package sdk

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Artifact names stored bytes. As a part of an output it is passed on to other tasks, and
// keeps the bytes for as long as a run has it. An output over 4 MiB becomes an artifact by
// itself: the tasks that it is passed on to get an Artifact as input, and [OpenJSON] reads
// either form.
type Artifact struct {
	Digest      string `json:"$artifact"` // "sha256:…" of the bytes
	Size        int64  `json:"size"`
	Name        string `json:"name,omitempty"`
	ContentType string `json:"content_type,omitempty"`
}

// artifactPart is how much is sent or read at a time.
const artifactPart = 1 << 20

// artifactReply is the members of the heads of answers.
type artifactReply struct {
	handle, size int64
	digest       string
}

func (r *artifactReply) member(name string, value []byte) {
	switch name {
	case "handle":
		r.handle = guest.IntOf(value)
	case "size":
		r.size = guest.IntOf(value)
	case "digest":
		r.digest = guest.TextOf(value)
	}
}

func handleHead(handle int64) *guest.Head {
	head := new(guest.Head)
	head.Int("handle", handle)
	return head
}

// ArtifactWriter stores an artifact piece by piece. The host stores a part while the function
// makes the next one, so an error may be that of an earlier Write. What is not committed is
// gone when the call ends.
type ArtifactWriter struct {
	call    call
	own     Artifact
	handle  int64
	pending []byte        // that was not sent
	sent    guest.Pending // the part that the host stores; nil: none
	failed  error         // of a part: nothing can follow
}

// Artifact implements Context.
func (c call) Artifact(name string) (*ArtifactWriter, error) {
	var head guest.Head
	head.Text("name", name)
	var reply artifactReply
	_, err := c.operate("artifact.create", &head, nil, reply.member)
	if err != nil {
		return nil, err
	}
	return &ArtifactWriter{call: c, own: Artifact{Name: name}, handle: reply.handle}, nil
}

// Write implements io.Writer.
func (w *ArtifactWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		if len(w.pending) == 0 && len(p) >= artifactPart { // it need not be collected
			if err := w.send(p[:artifactPart]); err != nil {
				return n, err
			}
			p, n = p[artifactPart:], n+artifactPart
			continue
		}
		if w.pending == nil {
			w.pending = make([]byte, 0, artifactPart)
		}
		part := min(len(p), artifactPart-len(w.pending))
		w.pending = append(w.pending, p[:part]...)
		p, n = p[part:], n+part
		if len(w.pending) == artifactPart {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush sends what was collected.
func (w *ArtifactWriter) flush() error {
	if len(w.pending) == 0 {
		return nil
	}
	if err := w.send(w.pending); err != nil {
		return err
	}
	w.pending = w.pending[:0]
	return nil
}

// send has the host store a part after the ones before, of which it waits for the last.
func (w *ArtifactWriter) send(part []byte) error {
	if err := w.settle(); err != nil {
		return err
	}
	var err error
	w.sent, err = w.call.Begin("artifact.write", handleHead(w.handle), part)
	return err
}

// settle waits until the host has stored what was sent. When the call is canceled before, it
// can be called again.
func (w *ArtifactWriter) settle() error {
	if w.sent == nil || w.failed != nil {
		return w.failed
	}
	_, err := w.call.Await(&w.sent, nil)
	if w.sent == nil {
		w.failed = err
	}
	return err
}

// Close discards what was not committed.
func (w *ArtifactWriter) Close() error {
	if w.handle == 0 {
		return nil
	}
	if w.sent != nil {
		w.sent.Close()
		w.sent = nil
	}
	_, err := w.call.operate("artifact.close", handleHead(w.handle), nil, nil)
	w.handle = 0
	return err
}

// Commit stores what was written and returns its name for the output.
func (w *ArtifactWriter) Commit() (Artifact, error) {
	if err := w.flush(); err != nil {
		return Artifact{}, err
	}
	if err := w.settle(); err != nil {
		return Artifact{}, err
	}
	var reply artifactReply
	if _, err := w.call.operate("artifact.commit", handleHead(w.handle), nil, reply.member); err != nil {
		return Artifact{}, err
	}
	w.own.Digest, w.own.Size, w.handle = reply.digest, reply.size, 0
	return w.own, nil
}

// ArtifactReader reads an artifact piece by piece. The host reads a part while the function
// uses the one before. It compares the bytes with the digest: reading a damaged artifact to
// its end fails with [ErrDamaged].
type ArtifactReader struct {
	call   call
	handle int64
	size   int64
	offset int64         // after rest
	rest   []byte        // of part, not read yet
	part   []byte        // memory for parts
	ahead  guest.Pending // the part at offset; nil: not asked for
}

// OpenArtifact implements Context.
func (c call) OpenArtifact(a Artifact) (*ArtifactReader, error) {
	var head guest.Head
	head.Text("digest", a.Digest)
	var reply artifactReply
	_, err := c.operate("artifact.open", &head, nil, reply.member)
	if err != nil {
		return nil, err
	}
	return &ArtifactReader{call: c, handle: reply.handle, size: reply.size}, nil
}

// OpenJSON reads JSON of the input that may have become an artifact because it is large, as
// [Artifact] describes. It takes the same grant as OpenArtifact, if it has. The caller closes
// the reader:
//
//	func total(ctx sdk.Context, in json.RawMessage) (int, error) {
//		r, err := sdk.OpenJSON(ctx, in)
//		if err != nil {
//			return 0, err
//		}
//		defer r.Close()
//		d := json.NewDecoder(r)
//		…
//	}
func OpenJSON(ctx Context, value json.RawMessage) (io.ReadCloser, error) {
	var stored Artifact
	if json.Unmarshal(value, &stored) == nil && stored.Digest != "" && stored.ContentType == "application/json" {
		return ctx.OpenArtifact(stored)
	}
	return io.NopCloser(bytes.NewReader(value)), nil
}

// Close frees the artifact for others: a call has a few open at once.
func (r *ArtifactReader) Close() error {
	if r.handle == 0 {
		return nil
	}
	if r.ahead != nil {
		r.ahead.Close()
		r.ahead = nil
	}
	_, err := r.call.operate("artifact.close", handleHead(r.handle), nil, nil)
	r.handle = 0
	return err
}

// Size is the number of bytes.
func (r *ArtifactReader) Size() int64 { return r.size }

// Read implements io.Reader.
func (r *ArtifactReader) Read(p []byte) (int, error) {
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo: it writes whole parts.
func (r *ArtifactReader) WriteTo(w io.Writer) (int64, error) {
	written := int64(0)
	for {
		if err := r.fill(); err == io.EOF {
			return written, nil
		} else if err != nil {
			return written, err
		}
		n, err := w.Write(r.rest)
		r.rest, written = r.rest[n:], written+int64(n)
		if err != nil {
			return written, err
		}
	}
}

// fill has rest contain something, and the host read the next part. It fails with io.EOF at
// the end.
func (r *ArtifactReader) fill() error {
	if len(r.rest) > 0 {
		return nil
	}
	if err := r.ask(); err != nil {
		return err
	}
	if r.ahead == nil {
		return io.EOF
	}
	reply, err := r.call.Await(&r.ahead, r.part)
	if err == nil && len(reply.Body) == 0 {
		err = &abi.Fault{Code: "damaged", Message: "the artifact is shorter than its size"}
	}
	if err != nil {
		return err
	}
	r.part, r.rest = reply.Body, reply.Body
	r.offset += int64(len(reply.Body))
	_ = r.ask() // it is asked again, with the same error, when the part is needed
	return nil
}

// ask has the host read the next part, if there is one and nobody has asked for it.
func (r *ArtifactReader) ask() error {
	if r.ahead != nil || r.offset >= r.size {
		return nil
	}
	head := handleHead(r.handle)
	head.Int("offset", r.offset)
	head.Int("length", artifactPart)
	var err error
	r.ahead, err = r.call.Begin("artifact.read", head, nil)
	return err
}
