package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/recordjson"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/run"
)

// Bounds of what is published and not in the index yet.
const (
	indexBatch = 1000                   // entries that are indexed together, and at once when there are so many
	indexEvery = 500 * time.Millisecond // how long fewer wait
	indexQueue = 64 * 1024              // entries; with more the index reads them from the stream later
)

// historyPulls is how many messages are read at a time: each may have 8 MiB, and all come by
// one connection, for which an external server keeps a bounded number of bytes.
const historyPulls = 2

// errorCode bounds the code of a failure in a summary, in bytes: guests make up
// their own, and the summary is in a header.
const errorCode = 128

// Config configures the history. Only Index is required.
type Config struct {
	Index string // file of the index, made when it is missing; its directory belongs to this process

	Shard   int           // of the journal; default 0
	Window  int           // messages that are under way together; default 256
	Timeout time.Duration // for an acknowledgement, after which they are sent again; default 5s
	Sync    func() error  // flushes the stream's files to the disk; default: nothing, they are the server's
	Room    func() error  // ErrNoRoom while the server must not be asked to write its files; default: it always may
	Log     *slog.Logger  // default: none
}

// Store keeps the records of finished runs in stream FH_HISTORY, and finds them
// there by its own index. A record of any size is kept whole: beside its JSON,
// which the engine made, it takes the memory of its compressed form until it is in
// the stream. Where it is read, that and the JSON are there for a moment, for one
// record at a time. Several processes may write the stream; each has an
// index of all of it. Committed takes a record, Run publishes and indexes it, Get
// and List see it at once.
type Store struct {
	publisher *jskit.Publisher
	shard     int
	path      string // of the index
	log       *slog.Logger
	many      chan struct{}       // signaled when a batch is there to be indexed
	reading   *semaphore.Weighted // held by who puts a record together from its parts
	pulling   *semaphore.Weighted // held by who waits for a message of the stream

	mu     sync.Mutex
	fresh  map[run.ID]*freshRecord // given, and not in the index yet
	stored []*freshRecord          // of these, in the stream: in its order
	index  *recordIndex            // nil while it is not up to date
	next   uint64                  // sequence up to which the last index that was in use had come
	change chan struct{}           // closed when index, next or ended is set
	ended  error                   // why Run has ended
}

// freshRecord is a record that is not in the index yet. Its seq is 0, and body is
// kept, while it is not in the stream either.
type freshRecord struct {
	entry indexEntry
	body  []byte
	whole *wholeRecord // of a body that is cut short
}

// New opens the stream that [bus.Provision] has made. The connection stays the
// caller's. The index is opened by Run.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	h := &Store{
		shard: cfg.Shard, path: cfg.Index, log: jskit.Logger(cfg.Log), many: make(chan struct{}, 1), reading: semaphore.NewWeighted(1), pulling: semaphore.NewWeighted(historyPulls),
		fresh: map[run.ID]*freshRecord{}, change: make(chan struct{}),
	}
	var err error
	h.publisher, err = jskit.NewPublisher(ctx, nc, jskit.PublisherConfig{
		Stream: bus.StreamHistory, Flush: bus.FlushSubject(bus.StreamHistory), What: "records of finished runs", Window: cfg.Window, Timeout: cfg.Timeout,
		Sync: cfg.Sync, Room: cfg.Room, Log: cfg.Log, Settled: h.settled,
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Committed takes the record of a run that has finished; other notices are none of
// its business. It waits while too many are on their way, until ctx ends. Runs
// whose record the stream has, or has had, are left out.
func (h *Store) Committed(ctx context.Context, n run.Notice) error {
	if n.Record == nil || !h.publisher.Retains(n.Event.At) {
		return nil
	}
	if known, err := h.known(ctx, n); err != nil || known {
		return err
	}
	r, messages, err := h.messages(n)
	if err != nil {
		return fmt.Errorf("record of run %s: %w", n.Record.Run, err)
	}
	if !h.enter(r) {
		return nil
	}
	for _, msg := range messages {
		if err := h.publisher.Enqueue(ctx, msg); err != nil {
			h.leave(r)
			return fmt.Errorf("record of run %s: %w", n.Record.Run, err)
		}
	}
	return nil
}

// messages gives the message of a record, after those of its parts where it has some.
func (h *Store) messages(n run.Notice) (*freshRecord, []*nats.Msg, error) {
	entry := indexEntry{Summary: n.Record.Summary()}
	if err := bus.CheckToken(n.Record.Flow); err != nil {
		return nil, nil, fmt.Errorf("flow: %w", err)
	}
	if !slices.Contains(finalStates, n.Record.State) {
		return nil, nil, fmt.Errorf("it is %s, and only finished runs are kept", n.Record.State)
	}
	entry.Error = cut(entry.Error, errorCode)
	summary, err := run.EncodeJSON(entry.Summary)
	if err != nil {
		return nil, nil, err
	}
	body, whole, err := recordjson.EncodeKept(n, h.publisher.Limit())
	if err != nil {
		return nil, nil, err
	}
	record := body
	if whole != nil {
		record = whole
	}
	entry.artifacts = artifactsOf(record)
	r := &freshRecord{entry: entry, body: body}
	msg := &nats.Msg{
		Subject: bus.HistorySubject(entry.Flow, entry.State),
		Data:    body,
		Header: nats.Header{
			jetstream.MsgIDHeader: {recordID(h.shard, n)},
			bus.HeaderRun:         {string(entry.Run)},
			bus.HeaderRevision:    {strconv.FormatUint(n.Revision, 10)},
			bus.HeaderIndex:       {strconv.Itoa(n.Index)},
			bus.HeaderSummary:     {string(summary)},
			run.HeaderHops:        {strconv.Itoa(n.Hops + run.HopsOfEvent)},
		},
	}
	if n := len(entry.artifacts); n > 0 {
		msg.Header.Set(bus.HeaderArtifacts, strconv.Itoa(n))
	}
	if whole == nil {
		return r, []*nats.Msg{msg}, nil
	}
	if r.whole, err = compress(recordID(h.shard, n), whole, min(partBytes, h.publisher.Limit())); err != nil {
		return nil, nil, err
	}
	msg.Header.Set(bus.HeaderParts, r.whole.header())
	return r, append(r.whole.messages(msg.Subject), msg), nil
}

// cut shortens a text to at most n bytes without breaking a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// known reports whether the record is in the stream already. The server knows what
// it took lately; the index knows the rest.
func (h *Store) known(ctx context.Context, n run.Notice) (bool, error) {
	if time.Since(n.Event.At) < bus.OwnDuplicates/2 {
		return false, nil
	}
	e, err := h.find(ctx, n.Record.Run)
	return e.seq > 0 && e.endsAs(n.Record.Summary()), err
}

// find asks the index for the entry of a record; its sequence is 0 when there is
// none. It waits while the index is not up to date.
func (h *Store) find(ctx context.Context, id run.ID) (indexEntry, error) {
	for {
		index, err := h.opened(ctx)
		if err != nil {
			return indexEntry{}, err
		}
		e, err := index.find(id)
		if !h.broken(index, err) {
			return e, err
		}
	}
}

// enter notes a record that is to be published, unless it is on its way already.
func (h *Store) enter(r *freshRecord) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fresh[r.entry.Run] != nil {
		return false
	}
	h.fresh[r.entry.Run] = r
	return true
}

// leave forgets records that are not to be published any more, or are in the index.
func (h *Store) leave(records ...*freshRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range records {
		if h.fresh[r.entry.Run] == r {
			delete(h.fresh, r.entry.Run)
		}
	}
}

// settled takes from the publisher what became of a record.
func (h *Store) settled(msg *nats.Msg, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.fresh[run.ID(msg.Header.Get(bus.HeaderRun))]
	if r == nil {
		return // a part
	}
	if seq == 0 {
		delete(h.fresh, r.entry.Run)
		return
	}
	r.entry.seq, r.body, r.whole = seq, nil, nil
	h.stored = append(h.stored, r)
	if len(h.stored) > indexQueue {
		for _, r := range h.stored {
			delete(h.fresh, r.entry.Run)
		}
		h.stored = nil
	}
	if len(h.stored) >= indexBatch {
		select {
		case h.many <- struct{}{}:
		default:
		}
	}
}

// Flush waits until everything that Committed took before is acknowledged and on
// the disk, as far as Sync is there to bring it there, or until ctx ends. Run must
// be running.
func (h *Store) Flush(ctx context.Context) error { return h.publisher.Flush(ctx) }

// Last finds where publishing ended. Notices after it are to be given to Committed
// again at start.
func (h *Store) Last(ctx context.Context, j *journal.Journal) (journal.Progress, error) {
	return j.Progress(ctx, h.publisher, func(header nats.Header) (journal.Published, bool) {
		shard, sum, ok := parseRecordID(header.Get(jetstream.MsgIDHeader))
		revision, err1 := strconv.ParseUint(header.Get(bus.HeaderRevision), 10, 64)
		index, err2 := strconv.Atoi(header.Get(bus.HeaderIndex))
		return journal.Published{Revision: revision, Index: index, Sum: sum}, ok && shard == h.shard && errors.Join(err1, err2) == nil
	})
}

// recordID names the record of a run's end. A run ends again, and differently, when
// the journal has lost its end.
func recordID(shard int, n run.Notice) string {
	return fmt.Sprintf("%d-%s-%08x", shard, n.Record.Run, n.Sum)
}

// parseRecordID reads an id. Those that older versions gave do not end with the
// commit's checksum.
func parseRecordID(id string) (shard int, sum string, ok bool) {
	first, rest, ok := strings.Cut(id, "-")
	_, sum, _ = strings.Cut(rest, "-")
	shard, err := strconv.Atoi(first)
	return shard, sum, ok && err == nil
}

// Get gives the record of a finished run, or run.ErrUnknown. It waits while the
// index is not up to date, until ctx ends.
func (h *Store) Get(ctx context.Context, id run.ID) (*run.Record, error) {
	seq, body, whole := h.lookFresh(id)
	switch {
	case whole != nil:
		return whole.decode(id)
	case body != nil:
		return decodeRecord(id, body)
	}
	if seq == 0 {
		e, err := h.find(ctx, id)
		if err != nil {
			return nil, err
		}
		seq = e.seq
	}
	if seq == 0 {
		return nil, run.ErrUnknown
	}
	return h.load(ctx, id, seq)
}

// load gives the record that the stream has at a place: the whole one, unless parts
// of it are gone.
func (h *Store) load(ctx context.Context, id run.ID, seq uint64) (*run.Record, error) {
	msg, err := h.message(ctx, seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, run.ErrUnknown // the index learns later that it is dropped
	case err != nil:
		return nil, fmt.Errorf("record of run %s: %w", id, err)
	case msg.Header.Get(bus.HeaderRun) != string(id):
		return nil, run.ErrUnknown
	}
	if msg.Header.Get(bus.HeaderParts) != "" {
		record, err := h.loadWhole(ctx, id, msg)
		if record != nil || err != nil {
			return record, err
		}
	}
	return decodeRecord(id, msg.Data)
}

// message gives a message of the stream.
func (h *Store) message(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	if err := h.pulling.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer h.pulling.Release(1)
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	return h.publisher.Stream().GetMsg(ctx, seq, opts...)
}

// lookFresh looks for a record that is not in the index yet.
func (h *Store) lookFresh(id run.ID) (seq uint64, body []byte, whole *wholeRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.fresh[id]; r != nil {
		return r.entry.seq, r.body, r.whole
	}
	return 0, nil, nil
}

func decodeRecord(id run.ID, body []byte) (*run.Record, error) {
	record := &run.Record{}
	if err := json.Unmarshal(body, record); err != nil {
		return nil, fmt.Errorf("record of run %s: %w", id, err)
	}
	return record, nil
}
