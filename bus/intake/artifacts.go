package intake

import (
	"context"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// ArtifactReader is what an intake needs to hand out artifacts.
type ArtifactReader interface {
	// ReadPart returns at most so many bytes from an offset on, none at the end, and the
	// size of the artifact. For one that is not stored it returns false.
	ReadPart(ctx context.Context, digest string, offset int64, most int) (part []byte, size int64, found bool, err error)
}

// artifact answers with a part of an artifact, to whoever may read the record that names it.
func (d *requests) artifact(hard context.Context, m inbound) {
	var body api.ArtifactRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		if err := d.checkNamed(ctx, body.Run, body.Digest); err != nil {
			return d.faultOf(body.Run, err)
		}
		most := min(api.MaxArtifactPart, d.largest()/4*3-partFrame) // it is in base64
		part, size, found, err := d.config.Artifacts.ReadPart(ctx, body.Digest, body.Offset, most)
		switch {
		case err != nil: // its text may name files of the host
			d.log.Error("an artifact cannot be read", "run", body.Run, "digest", body.Digest, "error", err)
			return fault(body.Run, api.CodeUnavailable, "the artifact cannot be read: the host's log has the reason")
		case !found:
			return fault(body.Run, api.CodeUnknownArtifact, "the artifact is not stored any more: its run is older than what is kept, or somebody removed it")
		}
		return answer{body: api.ArtifactPart{Size: size, Data: part}}
	})
}

// partFrame is room for the members of an answer around the bytes of a part.
const partFrame = 128

// checkNamed is an error unless the output of a task of the run names the artifact. An answer
// that was positive is used again: a reader asks for part after part.
func (d *requests) checkNamed(ctx context.Context, id run.ID, digest string) error {
	if d.named.has(id, digest) {
		return nil
	}
	record, err := d.config.Control.Get(ctx, id)
	if err != nil {
		return err
	}
	if !record.HasArtifact(digest) {
		return run.Requestf(api.CodeUnknownArtifact, "no output of a task of run %s names artifact %s", id, digest)
	}
	d.named.add(id, digest)
	return nil
}

// Bounds of what is remembered about artifacts.
const (
	maxNamed = 256
	namedAge = time.Minute
)

// named remembers which runs name which artifacts. An output does not change; the record may
// be removed, after which an artifact is handed out for namedAge at most.
type named struct {
	mu    sync.Mutex
	known map[namedKey]time.Time // when it was found
}

type namedKey struct {
	run    run.ID
	digest string
}

func (n *named) has(id run.ID, digest string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok := n.known[namedKey{id, digest}]
	return ok && time.Since(at) < namedAge
}

func (n *named) add(id run.ID, digest string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= maxNamed {
		n.known = map[namedKey]time.Time{}
	}
	n.known[namedKey{id, digest}] = time.Now()
}
