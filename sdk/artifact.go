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

// ArtifactWriter stores an artifact piece by piece. What is not committed is gone when the
// call ends.
type ArtifactWriter struct {
	call    call
	own     Artifact
	handle  int64
	pending []byte
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

func (w *ArtifactWriter) flush() error {
	if len(w.pending) == 0 {
		return nil
	}
	_, err := w.call.operate("artifact.write", handleHead(w.handle), w.pending, nil)
	w.pending = w.pending[:0]
	return err
}

// Close discards what was not committed.
func (w *ArtifactWriter) Close() error {
	if w.handle == 0 {
		return nil
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
	var reply artifactReply
	if _, err := w.call.operate("artifact.commit", handleHead(w.handle), nil, reply.member); err != nil {
		return Artifact{}, err
	}
	w.own.Digest, w.own.Size, w.handle = reply.digest, reply.size, 0
	return w.own, nil
}

// ArtifactReader reads an artifact piece by piece.
type ArtifactReader struct {
	call   call
	handle int64
	size   int64
	offset int64
	rest   []byte
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
	_, err := r.call.operate("artifact.close", handleHead(r.handle), nil, nil)
	r.handle = 0
	return err
}

// Size is the number of bytes.
func (r *ArtifactReader) Size() int64 { return r.size }

// Read implements io.Reader.
func (r *ArtifactReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.offset >= r.size {
			return 0, io.EOF
		}
		head := handleHead(r.handle)
		head.Int("offset", r.offset)
		head.Int("length", artifactPart)
		part, err := r.call.operate("artifact.read", head, nil, nil)
		if err == nil && len(part) == 0 {
			err = &abi.Fault{Code: "internal", Message: "the artifact is shorter than its size"}
		}
		if err != nil {
			return 0, err
		}
		r.rest = part
		r.offset += int64(len(part))
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
