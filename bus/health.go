package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Defaults of [HealthConfig].
const (
	DefaultMargin = 128 << 20
	healthEvery   = time.Second
	frozenAfter   = 5 * time.Second
	roomTime      = 2 * time.Second // for a server to tell the state of a stream
)

// Delays between attempts to start the embedded server again.
const (
	restartFirst = time.Second
	restartMax   = time.Minute
)

// HealthConfig configures a watcher. Its zero value works, and finds nothing.
type HealthConfig struct {
	Server   *Server       // the embedded one, restarted when it cannot write; nil with an external server
	Journals []*Journal    // those that this process writes
	Margin   int64         // bytes that must be free on the disk of the data folder; default DefaultMargin
	Every    time.Duration // between two looks; default 1s
	Frozen   time.Duration // that a commit may take; default 5s
	Log      *slog.Logger  // default: none
}

// UnreadyError says why new runs should not be accepted. What was accepted waits,
// and nothing of it is lost.
type UnreadyError struct {
	Reason string    // what is wrong
	Advice string    // what to do
	Since  time.Time // when it was first seen
	Err    error     // the error behind it, nil when there is none
}

func (e *UnreadyError) Error() string {
	return fmt.Sprintf("not ready since %s: %s; %s", e.Since.Format(time.DateTime), e.Reason, e.Advice)
}

func (e *UnreadyError) Unwrap() error { return e.Err }

// Health watches what commits depend on: the server, its disk and the journals. It
// repairs what can be repaired without an operator. Its methods are safe for
// concurrent use.
type Health struct {
	cfg HealthConfig

	mu     sync.Mutex
	found  *UnreadyError // by the last look; guarded by mu
	looked time.Time     // when that ended; guarded by mu

	// The following belong to Run.

	next  time.Time     // when the server may be restarted
	delay time.Duration // until the attempt after that
}

// NewHealth makes a watcher, for Run to watch. Until Run has looked once, Ready
// finds nothing wrong.
func NewHealth(cfg HealthConfig) *Health {
	if cfg.Margin <= 0 {
		cfg.Margin = DefaultMargin
	}
	if cfg.Every <= 0 {
		cfg.Every = healthEvery
	}
	if cfg.Frozen <= 0 {
		cfg.Frozen = frozenAfter
	}
	cfg.Log = logger(cfg.Log)
	return &Health{cfg: cfg}
}

// Ready is nil when new runs can be accepted, or an *UnreadyError.
func (h *Health) Ready() error {
	h.mu.Lock()
	found, looked := h.found, h.looked
	h.mu.Unlock()
	if found != nil {
		return found
	}
	if !looked.IsZero() && time.Since(looked) > h.cfg.Every+h.cfg.Frozen {
		return stalled(looked)
	}
	if frozen := h.frozen(time.Now()); frozen != nil {
		return frozen
	}
	return nil
}

// stalled is what a look that does not end means: it asks for nothing but the
// state of the server and of the disk.
func stalled(since time.Time) *UnreadyError {
	return &UnreadyError{
		Reason: "the NATS server, or the disk of the data folder, does not answer",
		Advice: "look at the disk; everything goes on as soon as it answers", Since: since,
	}
}

// Run watches until ctx ends, and returns its cause.
func (h *Health) Run(ctx context.Context) error {
	h.compareRoom(ctx)
	tick := time.NewTicker(h.cfg.Every)
	defer tick.Stop()
	for {
		found := h.look(ctx)
		if ctx.Err() == nil {
			h.note(found)
			h.repair(ctx, found)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// note keeps what was found, and logs it when it is something else than before.
func (h *Health) note(found *UnreadyError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.found
	if found != nil && before != nil && before.Advice == found.Advice {
		found.Since = before.Since
	}
	h.found, h.looked = found, time.Now()
	switch {
	case found != nil && (before == nil || before.Advice != found.Advice):
		h.cfg.Log.Error("no new runs are accepted", "reason", found.Reason, "advice", found.Advice)
	case found == nil && before != nil:
		h.cfg.Log.Info("new runs are accepted again", "after", time.Since(before.Since).Round(time.Millisecond))
	}
}

// look gives the first thing that is wrong.
func (h *Health) look(ctx context.Context) *UnreadyError {
	now := time.Now()
	if s := h.cfg.Server; s != nil {
		if found := h.serverState(s, now); found != nil {
			return found
		}
	}
	for _, j := range h.cfg.Journals {
		if found := journalState(ctx, j, now); found != nil {
			return found
		}
	}
	return h.frozen(now)
}

// serverState looks at the embedded server and its disk.
func (h *Health) serverState(s *Server, now time.Time) *UnreadyError {
	free, err := freeSpace(s.store())
	if err != nil {
		return &UnreadyError{
			Reason: fmt.Sprintf("the disk of %s cannot be looked at: %v", s.store(), err),
			Advice: "look at the disk", Since: now, Err: err,
		}
	}
	if free < h.cfg.Margin { // the server is not asked: it may hang in a write
		return &UnreadyError{
			Reason: fmt.Sprintf("the disk of %s is full: %d MiB are free, and %d MiB must be", s.store(), free>>20, h.cfg.Margin>>20),
			Advice: "make room on the disk", Since: now, Err: syscall.ENOSPC,
		}
	}
	if wrong := s.healthz(); wrong != nil {
		return &UnreadyError{
			Reason: fmt.Sprintf("the embedded NATS server cannot write: %v", wrong),
			Advice: "look at the disk of " + s.store() + "; the server is started again by itself until it can", Since: now, Err: wrong,
		}
	}
	return nil
}

// ErrNoRoom says that the disk of the embedded server is full.
var ErrNoRoom = errors.New("the disk of the data folder is full")

// Room tells whether the server may be asked to write out its files: ErrNoRoom
// while less than DefaultMargin is free on their disk.
func (s *Server) Room() error {
	if free, err := freeSpace(s.store()); err != nil || free < DefaultMargin {
		return cmp.Or(err, ErrNoRoom)
	}
	return nil
}

// serverError says why a NATS server takes no messages until it is started again.
type serverError string

func (e serverError) Error() string { return string(e) }

// Health tells what is wrong with the server: nil when it can be used.
func (s *Server) Health(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := s.healthz(); err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	return nil
}

// healthz asks the NATS server whether it stores messages. Streams that it did not
// find again are not its matter: provisioning makes them anew, over their messages.
func (s *Server) healthz() error {
	status := s.current().Healthz(&server.HealthzOptions{Details: true})
	for _, e := range status.Errors {
		lost := e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error")
		if lost || e.Type == server.HealthzErrorJetStream || e.Type == server.HealthzErrorConn {
			return serverError(e.Error)
		}
	}
	return nil
}

// repair starts a server that cannot write again: at once, then less and less
// often. While the disk is full that would be in vain.
func (h *Health) repair(ctx context.Context, found *UnreadyError) {
	var down serverError
	if found == nil || !errors.As(found, &down) {
		h.next, h.delay = time.Time{}, 0
		return
	}
	if errors.Is(found, syscall.ENOSPC) || time.Now().Before(h.next) {
		return
	}
	h.cfg.Log.Warn("starting the embedded NATS server again", "reason", down)
	if err := h.cfg.Server.Restart(ctx); err != nil {
		h.cfg.Log.Error("the embedded NATS server does not start", "error", err)
	}
	h.delay = min(max(2*h.delay, restartFirst), restartMax)
	h.next = time.Now().Add(h.delay)
}

// journalState looks at the room in a journal. New runs stop some time before
// there is none, so that those in progress can go on.
func journalState(ctx context.Context, j *Journal, now time.Time) *UnreadyError {
	if _, err := j.Pending(); errors.Is(err, ErrFull) {
		return fullJournal(now, err)
	}
	ctx, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	used, size, err := j.room(ctx)
	if err != nil {
		return &UnreadyError{
			Reason: fmt.Sprintf("the NATS server does not answer: %v", err),
			Advice: "look at the server and the network; everything goes on as soon as it answers", Since: now, Err: err,
		}
	}
	if size > 0 && used > size-size/16 {
		return fullJournal(now, ErrFull)
	}
	return nil
}

func fullJournal(now time.Time, err error) *UnreadyError {
	return &UnreadyError{
		Reason: "the journal is full",
		Advice: "wait for the next snapshot, which makes room, or raise the size of stream " + StreamJournal, Since: now, Err: err,
	}
}

// room tells how many bytes of the stream are used, and how many there are; 0 when
// it has no limit.
func (j *Journal) room(ctx context.Context) (used, size int64, err error) {
	if err := usable(j.nc); err != nil {
		return 0, 0, err
	}
	info, err := j.stream.Info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return int64(info.State.Bytes), max(info.Config.MaxBytes, 0), nil
}

// frozen looks for a commit that takes too long.
func (h *Health) frozen(now time.Time) *UnreadyError {
	for _, j := range h.cfg.Journals {
		since, err := j.Pending()
		if since.IsZero() || now.Sub(since) < h.cfg.Frozen {
			continue
		}
		why := "the server does not answer"
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			why = err.Error()
		}
		return &UnreadyError{
			Reason: "a commit cannot be written: " + why,
			Advice: "look at the server and its disk; the commit is repeated until it is written", Since: since, Err: err,
		}
	}
	return nil
}

// compareRoom warns of a journal that may grow beyond the disk.
func (h *Health) compareRoom(ctx context.Context) {
	if h.cfg.Server == nil {
		return
	}
	free, err := freeSpace(h.cfg.Server.store())
	if err != nil {
		return // look tells
	}
	for _, j := range h.cfg.Journals {
		ctx, cancel := context.WithTimeout(ctx, roomTime)
		used, size, err := j.room(ctx)
		cancel()
		if err == nil && size-used > free-h.cfg.Margin {
			h.cfg.Log.Warn("the disk is full before the journal is", "free", free, "journal", size-used)
		}
	}
}
