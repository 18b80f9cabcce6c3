package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

// Defaults of [Config].
const (
	healthEvery = time.Second
	frozenAfter = 5 * time.Second
	roomTime    = 2 * time.Second // for a server to report the state of a stream
)

// Delays between attempts to start the embedded server again.
const (
	restartFirst = time.Second
	restartMax   = time.Minute
)

// Config configures a watcher. Its zero value works, and finds nothing.
type Config struct {
	Server   *natsd.Server      // the embedded one, restarted when it cannot write; nil with an external server
	Journals []*journal.Journal // those that this process writes
	Margin   int64              // bytes that must be free on the disk of the data directory; default DefaultMargin
	Every    time.Duration      // between two looks; default 1s
	Frozen   time.Duration      // that a commit may take; default 5s
	Log      *slog.Logger       // default: none
}

// UnreadyError is the reason why new runs should not be accepted. Accepted runs wait,
// and none is lost.
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

// Watcher watches what commits depend on: the server, its disk and the journals. It
// repairs what can be repaired without an operator. Its methods are safe for
// concurrent use.
type Watcher struct {
	cfg Config

	mu     sync.Mutex
	found  *UnreadyError // by the last look; guarded by mu
	looked time.Time     // when that ended; guarded by mu

	// The following belong to Run.

	next  time.Time     // when the server may be restarted
	delay time.Duration // until the attempt after that
}

// New makes a watcher, for Run to watch. Until Run has looked once, Ready
// finds nothing wrong.
func New(cfg Config) *Watcher {
	if cfg.Margin <= 0 {
		cfg.Margin = natsd.DefaultMargin
	}
	if cfg.Every <= 0 {
		cfg.Every = healthEvery
	}
	if cfg.Frozen <= 0 {
		cfg.Frozen = frozenAfter
	}
	cfg.Log = jskit.Logger(cfg.Log)
	return &Watcher{cfg: cfg}
}

// Ready is nil when new runs can be accepted, or an *UnreadyError.
func (h *Watcher) Ready() error {
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
		Reason: "the NATS server, or the disk of the data directory, does not answer",
		Advice: "look at the disk; everything resumes as soon as it answers", Since: since,
	}
}

// Run watches until ctx ends, and returns its cause.
func (h *Watcher) Run(ctx context.Context) error {
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

// note keeps the finding, and logs it when it differs from the one before.
func (h *Watcher) note(found *UnreadyError) {
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
func (h *Watcher) look(ctx context.Context) *UnreadyError {
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
func (h *Watcher) serverState(s *natsd.Server, now time.Time) *UnreadyError {
	free, err := natsd.FreeSpace(s.Dir())
	if err != nil {
		return &UnreadyError{
			Reason: fmt.Sprintf("the disk of %s cannot be looked at: %v", s.Dir(), err),
			Advice: "look at the disk", Since: now, Err: err,
		}
	}
	if free < h.cfg.Margin { // the server is not asked: it may hang in a write
		return &UnreadyError{
			Reason: fmt.Sprintf("the disk of %s is full: %d MiB are free, and %d MiB must be", s.Dir(), free>>20, h.cfg.Margin>>20),
			Advice: "make room on the disk", Since: now, Err: syscall.ENOSPC,
		}
	}
	if wrong := s.Healthz(); wrong != nil {
		return &UnreadyError{
			Reason: fmt.Sprintf("the embedded NATS server cannot write: %v", wrong),
			Advice: "look at the disk of " + s.Dir() + "; the server is started again by itself until it can", Since: now, Err: wrong,
		}
	}
	return nil
}

// repair starts a server that cannot write again: at once, then less and less
// often. While the disk is full that would be in vain.
func (h *Watcher) repair(ctx context.Context, found *UnreadyError) {
	var down natsd.WriteError
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
// there is none, so that those in progress can continue.
func journalState(ctx context.Context, j *journal.Journal, now time.Time) *UnreadyError {
	if _, err := j.Pending(); errors.Is(err, journal.ErrFull) {
		return fullJournal(now, err)
	}
	ctx, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	used, size, err := j.Usage(ctx)
	if err != nil {
		return &UnreadyError{
			Reason: fmt.Sprintf("the NATS server does not answer: %v", err),
			Advice: "look at the server and the network; everything resumes as soon as it answers", Since: now, Err: err,
		}
	}
	if size > 0 && used > size-size/16 {
		return fullJournal(now, journal.ErrFull)
	}
	return nil
}

func fullJournal(now time.Time, err error) *UnreadyError {
	return &UnreadyError{
		Reason: "the journal is full",
		Advice: "wait for the next snapshot, which makes room, or raise the size of stream " + bus.StreamJournal, Since: now, Err: err,
	}
}

// frozen looks for a commit that takes too long.
func (h *Watcher) frozen(now time.Time) *UnreadyError {
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
func (h *Watcher) compareRoom(ctx context.Context) {
	if h.cfg.Server == nil {
		return
	}
	free, err := natsd.FreeSpace(h.cfg.Server.Dir())
	if err != nil {
		return // look reports it
	}
	for _, j := range h.cfg.Journals {
		ctx, cancel := context.WithTimeout(ctx, roomTime)
		used, size, err := j.Usage(ctx)
		cancel()
		if err == nil && size-used > free-h.cfg.Margin {
			h.cfg.Log.Warn("the disk is full before the journal is", "free", free, "journal", size-used)
		}
	}
}
