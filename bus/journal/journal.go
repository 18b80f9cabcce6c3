package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// MaxCommit is the largest commit that a journal takes, in bytes, where the
// server's payload limit allows it: half of an embedded server's, so that the
// record of a run fits into one message together with what else it holds.
const MaxCommit = 4 << 20

// ErrFull is what an append waits for when the stream, or what the server may use
// of the disk, is full: [Journal.Pending] and package health report it. The append continues
// when there is room again.
var ErrFull = errors.New("the journal is full: raise the size of stream " + bus.StreamJournal + ", or that of all streams together")

// SizeError refuses a commit that is larger than the journal's Limit.
type SizeError struct {
	Size, Limit int // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("a commit of %d bytes is over the journal's limit of %d", e.Size, e.Limit)
}

// Config configures a journal. Its zero value works.
type Config struct {
	Timeout time.Duration // of one attempt to append, after which it is repeated; default 5s
	Log     *slog.Logger  // default: none
}

// Journal is the commit log of one shard in stream FH_JOURNAL. A commit's
// revision is its sequence in the stream: revisions rise, and need not be
// consecutive. Its methods are safe for concurrent use.
type Journal struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	subject string
	shard   int
	timeout time.Duration
	log     *slog.Logger

	mu     sync.Mutex
	flight flight // guarded by mu
}

// flight is what an append waits for.
type flight struct {
	appends int       // under way
	since   time.Time // of the first of them
	err     error     // of the last attempt that failed
}

// New opens the journal of a shard, whose stream [bus.ProvisionJournal] has
// made. The connection stays the caller's.
func New(ctx context.Context, nc *nats.Conn, shard int, cfg Config) (*Journal, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	stream, err := js.Stream(ctx, bus.StreamJournal)
	if err != nil {
		return nil, fmt.Errorf("journal: stream %s: %w", bus.StreamJournal, err)
	}
	j := &Journal{
		nc: nc, js: js, stream: stream, shard: shard, subject: bus.JournalSubject(shard),
		timeout: cfg.Timeout, log: jskit.Logger(cfg.Log),
	}
	if j.timeout <= 0 {
		j.timeout = 5 * time.Second
	}
	return j, nil
}

// Limit is the size of the largest commit in bytes: MaxCommit, or less where the
// server's payload limit demands it.
func (j *Journal) Limit() int { return min(MaxCommit, int(j.nc.MaxPayload())-jskit.Overhead) }

// Append adds a commit after the revision that is the shard's last, 0 when it has
// none, and returns when the server has acknowledged it. While the server cannot
// be reached, has no room, or cannot write, it waits, until ctx ends; then it is
// unknown whether the commit was recorded. Repeating an append with the same
// arguments is harmless and gives the same revision. Errors: run.ErrFenced,
// *SizeError, nats.ErrConnectionClosed, the cause of ctx.
func (j *Journal) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	if limit := j.Limit(); len(commit) > limit {
		return 0, &SizeError{Size: len(commit), Limit: limit}
	}
	j.begin()
	defer j.end()
	id := j.commitID(after, commit)
	p := jskit.Backoff{Log: j.log, What: "append to the journal"}
	var missing time.Time // since when a server answers that the journal ends too early
	for {
		revision, err := j.attempt(ctx, after, id, commit)
		if err == nil {
			p.Done()
			return revision, nil
		}
		if !errors.Is(err, errShort) {
			missing = time.Time{}
		} else if missing.IsZero() {
			missing = time.Now()
		}
		if errors.Is(err, errShort) && (!j.replicated() || time.Since(missing) >= formerLeader*j.timeout) {
			err = fmt.Errorf("%w: %w", run.ErrFenced, err)
		}
		if jskit.Permanent(err) && !errors.Is(err, ErrFull) {
			return 0, fmt.Errorf("append to the journal after revision %d: %w", after, err)
		}
		j.failed(err)
		if err := p.Wait(ctx, err); err != nil {
			return 0, fmt.Errorf("append to the journal after revision %d: %w", after, err)
		}
	}
}

// Pending reports since when a commit is on its way to the disk, the zero time when
// none is, and why it could not be recorded so far, nil when nothing went wrong.
func (j *Journal) Pending() (since time.Time, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flight.since, j.flight.err
}

func (j *Journal) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flight.appends++; j.flight.appends == 1 {
		j.flight.since = time.Now()
	}
}

func (j *Journal) failed(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flight.err = err
}

func (j *Journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flight.appends--; j.flight.appends == 0 {
		j.flight = flight{}
	}
}

// commitID is the same for a repeated append and no other.
func (j *Journal) commitID(after uint64, commit []byte) string {
	digest := sha256.Sum256(commit)
	return fmt.Sprintf("%d-%d-%x", j.shard, after, digest[:16])
}

func (j *Journal) attempt(ctx context.Context, after uint64, id string, commit []byte) (uint64, error) {
	if err := jskit.Usable(j.nc); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	msg := &nats.Msg{Subject: j.subject, Data: commit, Header: nats.Header{
		jetstream.MsgIDHeader:               {id},
		jetstream.ExpectedStreamHeader:      {bus.StreamJournal},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(after, 10)},
	}}
	// An acknowledgement as a duplicate carries the sequence of the first one: the
	// id shows that it was ours.
	ack, err := j.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	if err == nil {
		return ack.Sequence, nil
	}
	switch {
	case jskit.IsConflict(err):
		return j.settle(ctx, after, id)
	case jskit.IsFull(err):
		return 0, fmt.Errorf("%w (%w)", ErrFull, err)
	}
	return 0, err
}

// errUnsettled reports that the server refused a commit for another one that cannot
// be seen yet.
var errUnsettled = errors.New("another commit is being stored")

// errShort reports that a server holds less of the journal than it acknowledged.
var errShort = errors.New("commits are missing")

// formerLeader is how long a server may be believed to lead the stream that does not
// any more, in timeouts of an append: one that was cut off or paused answers from
// what it has, until it hears of its successor or misses the others.
const formerLeader = 3

// replicated reports whether several servers hold the journal.
func (j *Journal) replicated() bool { return j.stream.CachedInfo().Config.Replicas > 1 }

// settle finds out whether the commit that follows revision after is ours, from
// an attempt whose answer was lost.
func (j *Journal) settle(ctx context.Context, after uint64, id string) (uint64, error) {
	next, err := j.stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(j.subject))
	if err == nil {
		if next.Header.Get(jetstream.MsgIDHeader) == id {
			return next.Sequence, nil
		}
		return 0, fmt.Errorf("%w: revision %d follows", run.ErrFenced, next.Sequence)
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, err
	}
	last, err := j.last(ctx)
	if err != nil {
		return 0, err
	}
	if last < after {
		return 0, fmt.Errorf("it ends at revision %d: %w", last, errShort)
	}
	return 0, errUnsettled
}

// last is the shard's last revision, 0 when it has none.
func (j *Journal) last(ctx context.Context) (uint64, error) {
	msg, err := j.stream.GetLastMsgForSubject(ctx, j.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return msg.Sequence, nil
}

// Compact removes the shard's commits up to and including the revision, but never
// the last one: it is what the next append follows. While the server cannot be
// reached it waits, until ctx ends. Repeating it is harmless.
func (j *Journal) Compact(ctx context.Context, upTo uint64) error {
	p := jskit.Backoff{Log: j.log, What: "compact the journal"}
	for {
		err := j.compact(ctx, upTo)
		if err == nil {
			p.Done()
			return nil
		}
		if jskit.Permanent(err) {
			return fmt.Errorf("compaction of the journal: %w", err)
		}
		if err := p.Wait(ctx, err); err != nil {
			return fmt.Errorf("compaction of the journal: %w", err)
		}
	}
}

func (j *Journal) compact(ctx context.Context, upTo uint64) error {
	if err := jskit.Usable(j.nc); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	e, err := j.extent(ctx)
	if err != nil {
		return err
	}
	last, err := j.last(ctx)
	if err != nil {
		return err
	}
	if last == 0 || min(upTo, last-1) < e.first {
		return nil
	}
	until := jetstream.WithPurgeSequence(min(upTo, last-1) + 1)
	if e.alone {
		// Whole files are dropped; with a subject each message would be looked at.
		return j.stream.Purge(ctx, until)
	}
	return j.stream.Purge(ctx, until, jetstream.WithPurgeSubject(j.subject))
}

// Usage reports how many bytes of the stream are used, and how many there are; 0 when
// it has no limit.
func (j *Journal) Usage(ctx context.Context) (used, size int64, err error) {
	if err := jskit.Usable(j.nc); err != nil {
		return 0, 0, err
	}
	info, err := j.stream.Info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return int64(info.State.Bytes), max(info.Config.MaxBytes, 0), nil
}
