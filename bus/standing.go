package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run/wire"
)

// Standing tells how far a publisher has come with what a journal holds.
type Standing struct {
	// Revision and Index are the place of the last published event that the journal
	// still holds; 0 when there is none.
	Revision uint64
	Index    int

	// Told is the revision of the last published event, 0 when there is none. The
	// journal has lost its end since when that is another one than Revision.
	Told uint64
}

// published is the place of a published event, as its message names it.
type published struct {
	revision uint64
	index    int
	sum      string // of the commit, in hexadecimal; empty when an older version published it
}

// standing compares the stream with the journal, from the stream's end on. read
// gives what a message is about; messages that are not ok are passed over.
//
// What the stream holds beyond the journal stays there: others may have read it.
func (p *publisher) standing(ctx context.Context, j *Journal, read func(nats.Header) (published, bool)) (s Standing, err error) {
	held, err := j.held(ctx)
	if err != nil {
		return s, fmt.Errorf("%s: %w", p.what, err)
	}
	err = p.backwards(ctx, func(msg *jetstream.RawStreamMsg) (bool, error) {
		at, ok := read(msg.Header)
		if !ok {
			return false, nil
		}
		if s.Told == 0 {
			s.Told = at.revision
		}
		ours, err := held.has(ctx, at)
		if ours {
			s.Revision, s.Index = at.revision, at.index
		}
		return ours || held.none(), err
	})
	return s, err
}

// heldCommits looks for commits in a journal.
type heldCommits struct {
	journal *Journal
	extent  extent

	revision uint64 // of the last one that was looked at; 0 before
	sum      string // its own
}

func (j *Journal) held(ctx context.Context) (*heldCommits, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	e, err := j.extent(ctx)
	return &heldCommits{journal: j, extent: e}, err
}

// none reports whether the journal has never had a commit, or has lost them all.
func (h *heldCommits) none() bool { return h.extent.last == 0 }

// has reports whether the journal holds the commit of an event. One that it gave up
// was held: compaction leaves nothing out that is not published.
func (h *heldCommits) has(ctx context.Context, at published) (bool, error) {
	switch {
	case at.revision > h.extent.last:
		return false, nil
	case at.revision < h.extent.first || at.sum == "":
		return true, nil
	case at.revision == h.revision:
		return at.sum == h.sum, nil
	}
	msg, err := h.journal.stream.GetMsg(ctx, at.revision)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil // it is damaged, and that is for the replay to tell
	case err != nil:
		return false, err
	case msg.Subject != h.journal.subject:
		return false, nil // another shard's now
	}
	h.revision, h.sum = at.revision, fmt.Sprintf("%08x", wire.CommitSum(msg.Data))
	return at.sum == h.sum, nil
}
