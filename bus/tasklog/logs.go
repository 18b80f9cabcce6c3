package tasklog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Bounds of what is stored together, and what things cost in the buffer beside
// their text.
const (
	logMessageBytes = 32 << 10 // of one message, unless a single line is larger
	logWindow       = 256      // messages that are under way together

	logLineCost  = 96
	logBatchCost = 512
)

// Config configures the logs of tasks. Its zero value works.
type Config struct {
	Buffer  int64         // bytes of lines that wait to be stored; when it is full, lines are dropped; default 16 MiB
	Delay   time.Duration // after which a line is on its way at the latest; default 100 ms
	Timeout time.Duration // for an acknowledgement, after which a message is sent again; default 5s
	Log     *slog.Logger  // default: none
}

// Store keeps what tasks write while they run, in stream FH_LOGS. Write takes a
// line, Run stores it, Read finds it again. Its methods are safe for concurrent
// use.
//
// Store are not part of the journal, and nothing waits for them. A crash loses the
// lines of the last Delay and those that the server has not flushed to the disk.
// While the server is away, lines wait in the buffer; those for which it has no
// room are dropped, and a line of level warn replaces them. Lines whose
// acknowledgement is lost for longer than the stream remembers ids, 30 s, may be
// stored twice.
type Store struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	config  Config // with all defaults
	session string // begins the ids of messages

	wake    chan struct{} // holds one: there is something to look at
	flushes chan chan struct{}

	mu      sync.Mutex
	waiting map[logAttempt]*logBatch
	order   []*logBatch // those that wait, oldest first
	full    bool        // one of them fills a message
	used    int64       // bytes that wait or are under way
	dropped int         // lines since Run has logged them
	sent    uint64      // messages so far
	running bool
}

// New opens the stream that [bus.Provision] has made. The connection stays the
// caller's.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	if cfg.Buffer <= 0 {
		cfg.Buffer = 16 << 20
	}
	if cfg.Delay <= 0 {
		cfg.Delay = 100 * time.Millisecond
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	cfg.Log = jskit.Logger(cfg.Log)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(logWindow), jetstream.WithPublishAsyncTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	stream, err := js.Stream(ctx, bus.StreamLogs)
	if err != nil {
		return nil, fmt.Errorf("logs: stream %s: %w", bus.StreamLogs, err)
	}
	return &Store{
		nc: nc, js: js, stream: stream, config: cfg, session: rand.Text()[:12],
		wake: make(chan struct{}, 1), flushes: make(chan chan struct{}),
		waiting: map[logAttempt]*logBatch{},
	}, nil
}

// logAttempt is what the lines of one message have in common.
type logAttempt struct {
	flow    string
	run     run.ID
	task    string
	key     string
	attempt int
}

// logBatch is lines of one attempt that wait. The first ones may be taken from it
// while it is being stored.
type logBatch struct {
	logAttempt
	since time.Time // when the first line came
	lines []logLine
	bytes int64
	drops int       // lines after the last one
	gap   time.Time // of the first of them
}

type logLine struct {
	run.LogLine
	at   time.Time
	cost int64
}

func (b *logBatch) push(at time.Time, line run.LogLine) (cost int64) {
	cost = int64(len(line.Message)+len(line.Fields)) + logLineCost
	b.lines = append(b.lines, logLine{LogLine: line, at: at, cost: cost})
	b.bytes += cost
	return cost
}

// noteDropped puts a line where others were dropped.
func (b *logBatch) noteDropped() (cost int64) {
	if b.drops == 0 {
		return 0
	}
	fields := json.RawMessage(fmt.Sprintf(`{"lines":%d}`, b.drops))
	b.drops = 0
	return b.push(b.gap, run.LogLine{Level: "warn", Message: "lines were dropped: they came faster than they could be stored", Fields: fields})
}

// Write takes a line that a call's guest wrote at the given time. It never waits.
// The line is not to be changed any more.
func (l *Store) Write(call *run.Call, at time.Time, line run.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batch(call)
	switch {
	case b == nil:
		l.dropped++
	case l.used+int64(len(line.Message)+len(line.Fields))+logLineCost > l.config.Buffer:
		l.dropped++
		if b.drops++; b.drops == 1 {
			b.gap = at
		}
	default:
		l.used += b.noteDropped()
		l.used += b.push(at, line)
		if b.bytes >= logMessageBytes && !l.full {
			l.full = true
			l.look()
		}
	}
}

// batch is that of the call's attempt. There is none, not even one that counts
// what it misses, when too many are there or when none could be stored.
func (l *Store) batch(call *run.Call) *logBatch {
	a := logAttempt{flow: call.Flow, run: call.Run, task: call.Task, key: call.Key, attempt: call.Attempt}
	if b := l.waiting[a]; b != nil {
		return b
	}
	_, err := run.ParseID(string(call.Run))
	if err != nil || bus.CheckToken(call.Flow) != nil || l.used+logBatchCost > l.config.Buffer+l.config.Buffer/8 {
		return nil
	}
	b := &logBatch{logAttempt: a, since: time.Now()}
	l.used += logBatchCost
	l.waiting[a] = b
	if l.order = append(l.order, b); len(l.order) == 1 {
		l.look()
	}
	return b
}

// look lets Run look at what waits.
func (l *Store) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// due is for how long nothing need be stored. There is no such time when
// nothing waits.
func (l *Store) due(now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.full:
		return 0, true
	case len(l.order) == 0:
		return 0, false
	}
	return max(l.order[0].since.Add(l.config.Delay).Sub(now), 0), true
}

// take gives the batches that are old enough, or fill a message, or all of them.
// They belong to the caller: what comes now makes new ones.
func (l *Store) take(now time.Time, all bool) []*logBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken, kept []*logBatch
	for _, b := range l.order {
		if !all && b.bytes < logMessageBytes && now.Sub(b.since) < l.config.Delay {
			kept = append(kept, b)
			continue
		}
		l.used += b.noteDropped()
		delete(l.waiting, b.logAttempt)
		taken = append(taken, b)
	}
	l.order, l.full = kept, false
	return taken
}

// release gives room in the buffer back.
func (l *Store) release(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= bytes
}
