package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// markEvery is the time between two marks at least: under load one is for many commits.
const markEvery = 10 * time.Millisecond

// MarkConfig configures a mark. Its zero value works.
type MarkConfig struct {
	File    string        // that holds the revision, too, in case that the NATS server forgets all streams; default: none
	Timeout time.Duration // for an acknowledgement, after which the mark is sent again; default 5s
	Log     *slog.Logger  // default: none
}

// Mark notes, apart from the journal, up to which revision others may know of it: one
// message for a shard in stream FH_MARKS. A journal that ends before its mark has lost
// its end. Durable takes a revision, Run stores the newest, Flush waits for that.
type Mark struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	shard int
	cfg   MarkConfig
	log   *slog.Logger
	file  markFile // of Run

	revision atomic.Uint64
	come     chan struct{} // one place
	flushes  chan chan struct{}
}

type markBody struct {
	Revision uint64 `json:"revision"`
}

// NewMark makes the mark of a shard in the stream that [bus.Provision] has made. The
// connection stays the caller's.
func NewMark(nc *nats.Conn, shard int, cfg MarkConfig) (*Mark, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("mark: %w", err)
	}
	log := jskit.Logger(cfg.Log)
	return &Mark{
		nc: nc, js: js, shard: shard, cfg: cfg, log: log, file: markFile{path: cfg.File, log: log},
		come: make(chan struct{}, 1), flushes: make(chan chan struct{}),
	}, nil
}

// Durable notes that the journal has a revision. It never waits.
func (m *Mark) Durable(revision uint64) {
	m.revision.Store(revision)
	select {
	case m.come <- struct{}{}:
	default:
	}
}

// Last gives the revision of the mark, 0 when there is none: that of the stream or that
// of the file, whichever is later. Run must not have begun.
func (m *Mark) Last(ctx context.Context) (uint64, error) {
	stored, err := m.stored(ctx)
	return max(stored, m.file.read()), err
}

func (m *Mark) stored(ctx context.Context) (uint64, error) {
	stream, err := m.js.Stream(ctx, bus.StreamMarks)
	if err != nil {
		return 0, fmt.Errorf("mark of the journal: %w", err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, bus.MarkSubject(m.shard))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("mark of the journal: %w", err)
	}
	var body markBody
	if err := json.Unmarshal(msg.Data, &body); err != nil {
		m.log.Error("the mark of the journal cannot be read; only the history shows how far others know of it", "error", err)
		return 0, nil
	}
	return body.Revision, nil
}

// Run stores marks until ctx ends, and returns its cause. While the server cannot be
// reached it waits.
func (m *Mark) Run(ctx context.Context) error {
	pause := time.NewTimer(markEvery)
	defer pause.Stop()
	defer m.file.close()
	for {
		var flushed chan struct{}
		isNew := true
		select {
		case <-m.come:
		case flushed = <-m.flushes:
			select {
			case <-m.come:
			default:
				isNew = false
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if isNew {
			m.file.write(m.revision.Load())
			if err := m.store(ctx); err != nil {
				return err
			}
		}
		if flushed != nil {
			close(flushed)
		}
		pause.Reset(markEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Flush waits until a mark is stored that is not older than the last call of Durable, or
// ctx ends. Run must be running.
func (m *Mark) Flush(ctx context.Context) error {
	flushed := make(chan struct{})
	select {
	case m.flushes <- flushed:
	case <-ctx.Done():
		return fmt.Errorf("mark of the journal: %w", context.Cause(ctx))
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mark of the journal: %w", context.Cause(ctx))
	}
}

func (m *Mark) store(ctx context.Context) error {
	delay := jskit.Backoff{Log: m.log, What: "mark the journal"}
	for {
		err := m.publish(ctx)
		if err == nil {
			delay.Done()
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return fmt.Errorf("mark of the journal: %w", err)
		}
		if err := delay.Wait(ctx, err); err != nil {
			return err
		}
	}
}

func (m *Mark) publish(ctx context.Context) error {
	if err := jskit.Usable(m.nc); err != nil {
		return err
	}
	body, err := json.Marshal(markBody{m.revision.Load()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	_, err = m.js.PublishMsg(ctx, &nats.Msg{Subject: bus.MarkSubject(m.shard), Data: body}, jetstream.WithRetryAttempts(0))
	return err
}
