package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Progress is how far a publisher has come with what a journal holds.
type Progress struct {
	// InJournal and Index are the place of the last published event that the journal
	// still holds; 0 when there is none.
	InJournal uint64
	Index     int

	// Published is the revision of the last published event, 0 when there is none. The
	// journal has lost its end since when it differs from InJournal.
	Published uint64
}

// Published is the place of a published event, as its message names it.
type Published struct {
	Revision uint64
	Index    int
	Sum      string // of the commit, in hexadecimal; empty when an older version published it
}

// Progress compares the stream with the journal, from the stream's end on. read
// gives what a message is about; messages that are not ok are passed over.
//
// What the stream holds beyond the journal stays there: others may have read it.
func (j *Journal) Progress(ctx context.Context, p *jskit.Publisher, read func(nats.Header) (Published, bool)) (s Progress, err error) {
	held, err := j.held(ctx)
	if err != nil {
		return s, fmt.Errorf("%s: %w", p.What(), err)
	}
	err = p.Backwards(ctx, func(msg *jetstream.RawStreamMsg) (bool, error) {
		at, ok := read(msg.Header)
		if !ok {
			return false, nil
		}
		if s.Published == 0 {
			s.Published = at.Revision
		}
		ours, err := held.has(ctx, at)
		if ours {
			s.InJournal, s.Index = at.Revision, at.Index
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
func (h *heldCommits) has(ctx context.Context, at Published) (bool, error) {
	switch {
	case at.Revision > h.extent.last:
		return false, nil
	case at.Revision < h.extent.first || at.Sum == "":
		return true, nil
	case at.Revision == h.revision:
		return at.Sum == h.sum, nil
	}
	msg, err := h.journal.stream.GetMsg(ctx, at.Revision)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil // it is damaged, and the replay reports that
	case err != nil:
		return false, err
	case msg.Subject != h.journal.subject:
		return false, nil // another shard's now
	}
	h.revision, h.sum = at.Revision, fmt.Sprintf("%08x", run.CommitSum(msg.Data))
	return at.Sum == h.sum, nil
}
