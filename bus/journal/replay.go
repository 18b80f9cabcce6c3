package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// replayPull bounds one pull of a replay: a server that cannot read a commit
// delivers nothing and gives no reason.
const replayPull = 2 * time.Second

// Replay hands the shard's commits above the revision to apply, in order, up to
// the one that is last when it is called. The bytes belong to apply, whose error
// ends the replay and is returned. What [Journal.Compact] removed is not given. A
// *DamageError reports that commits are missing; those before them were given. While
// the server cannot be reached it waits, until ctx ends.
func (j *Journal) Replay(ctx context.Context, after uint64, apply func(revision uint64, commit []byte) error) error {
	r := replay{
		journal: j, apply: apply,
		reader: jskit.Reader{JS: j.js, Stream: bus.StreamJournal, Subject: j.subject, Pull: replayPull},
	}
	defer r.reader.Close(ctx)
	p := jskit.Backoff{Log: j.log, What: "read the journal"}
	for {
		err := r.step(ctx, after)
		if r.moved || err == nil {
			p.Done()
		}
		if r.finished || r.failed != nil {
			return replayError(r.failed)
		}
		if err == nil {
			continue
		}
		if jskit.Permanent(err) {
			return replayError(err)
		}
		if err := p.Wait(ctx, err); err != nil {
			return replayError(err)
		}
	}
}

func replayError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("replay of the journal: %w", err)
}

// Shard is the number of the journal's shard.
func (j *Journal) Shard() int { return j.shard }

// From gives the shard's first commit from a revision on, nil when there is none.
func (j *Journal) From(ctx context.Context, revision uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	msg, err := j.stream.GetMsg(ctx, revision, jetstream.WithGetMsgSubject(j.subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// Reader reads the shard's commits from a revision on, at most so many at a time.
func (j *Journal) Reader(revision uint64, most int) jskit.Reader {
	return jskit.Reader{JS: j.js, Stream: bus.StreamJournal, Subject: j.subject, Next: revision, Pull: replayPull, Most: most}
}

// replay is one reading of a journal.
type replay struct {
	journal *Journal
	apply   func(uint64, []byte) error
	reader  jskit.Reader
	extent  extent // of the journal when the reading began

	begun    bool
	moved    bool  // the last step gave commits
	finished bool  // all was given
	failed   error // what ends the reading: the error of apply, or damage
}

// step continues the reading. Its error may pass; r.failed has a permanent one.
func (r *replay) step(ctx context.Context, after uint64) error {
	r.moved = false
	if !r.begun {
		if err := r.begin(ctx, after); err != nil || r.failed != nil {
			return err
		}
	}
	if r.reader.Next > r.extent.last {
		return r.finish(ctx)
	}
	from := r.reader.Next
	err := r.reader.Fetch(ctx, func(m jetstream.Msg, at jskit.Place) error {
		if err := r.check(ctx, at.Seq-1, at.Seq); err != nil {
			return err
		}
		if r.failed = r.apply(at.Seq, m.Data()); r.failed != nil {
			return r.failed
		}
		if at.Seq >= r.extent.last {
			return jskit.ErrEnough
		}
		return nil
	})
	r.moved = r.reader.Next > from
	if err == nil && !r.moved {
		return r.stuck(ctx)
	}
	return err
}

// begin determines the range to read.
func (r *replay) begin(ctx context.Context, after uint64) error {
	ctx, cancel := context.WithTimeout(ctx, r.journal.timeout)
	defer cancel()
	e, err := r.journal.extent(ctx)
	if err != nil {
		return err
	}
	r.begun, r.extent = true, e
	r.reader.Next = max(after+1, e.first)
	switch {
	case after > e.last:
		r.failed = &DamageError{First: e.last + 1, Last: after, Before: e.last}
	case e.alone && e.first > e.last && after < e.last:
		r.failed = &DamageError{First: after + 1, Last: e.last}
	}
	return nil
}

// finish ends the reading, unless commits behind the last one are lost.
func (r *replay) finish(ctx context.Context) error {
	err := r.check(ctx, r.extent.end, 0)
	r.finished = err == nil
	return err
}

// check fails with a *DamageError, also in r.failed, when commits are lost from the
// one that is to be given next up to a sequence; behind is the first that can be
// read after it.
func (r *replay) check(ctx context.Context, to, behind uint64) error {
	first, last, lost := r.extent.lost(r.reader.Next, to)
	if lost && r.journal.replicated() {
		if err := r.fill(ctx, to); err != nil {
			return err
		}
		first, last, lost = r.extent.lost(r.reader.Next, to)
	}
	if !lost {
		return nil
	}
	now, err := r.journal.extent(ctx)
	if err != nil {
		return err
	}
	if now.first > last {
		return nil // another process compacts the journal meanwhile
	}
	r.failed = &DamageError{First: first, Last: last, Before: r.before(first), After: behind}
	return r.failed
}

// fill gives commits up to a sequence, as far as the stream's leader has them: the
// consumer lies on any of the servers, and passes over what is damaged there.
func (r *replay) fill(ctx context.Context, to uint64) error {
	for r.reader.Next <= to {
		msg, err := r.get(ctx, r.reader.Next, jetstream.WithGetMsgSubject(r.journal.subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if msg.Sequence > to || r.extent.alone && msg.Sequence > r.reader.Next {
			return nil
		}
		r.journal.log.Warn("a server cannot read a commit, and the leader can: its copy of the journal is damaged", "revision", msg.Sequence)
		if r.failed = r.apply(msg.Sequence, msg.Data); r.failed != nil {
			return r.failed
		}
		r.reader.Next = msg.Sequence + 1
	}
	return nil
}

// before is the last revision that can be read before a lost one.
func (r *replay) before(lost uint64) uint64 {
	if lost == r.extent.first {
		return 0
	}
	return lost - 1
}

// stuck looks for what keeps the server from delivering: commits that it lost or
// cannot read. The server answers for both that there is no such message.
func (r *replay) stuck(ctx context.Context) error {
	first := r.reader.Next
	if r.journal.replicated() {
		err := r.fill(ctx, r.extent.last)
		if r.moved = r.reader.Next > first; err != nil || r.moved {
			r.reader.Close(ctx) // a new one may lie on a server that can read the rest
			return err
		}
	}
	for seq := first; ; seq++ {
		if seq > r.extent.last {
			r.failed = &DamageError{First: first, Last: r.extent.last, Before: r.before(first)}
			return nil
		}
		msg, err := r.get(ctx, seq)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			continue
		case err != nil:
			return err
		case seq == first && msg.Subject == r.journal.subject:
			return nil // there is one after all
		case msg.Subject != r.journal.subject:
			continue
		}
		r.failed = &DamageError{First: first, Last: seq - 1, Before: r.before(first), After: seq}
		return nil
	}
}

func (r *replay) get(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, r.journal.timeout)
	defer cancel()
	return r.journal.stream.GetMsg(ctx, seq, opts...)
}
