package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// Times of a lease. A host that cannot renew it for leaseExpire is replaced only if
// another one waits for that; what keeps them apart then is the expected revision of each
// commit.
const (
	leaseRenew  = time.Second
	leaseExpire = 5 * time.Second
)

// Owner is the host that uses a journal.
type Owner struct {
	Host    string    `json:"host"`    // name of the machine
	Process int       `json:"process"` // id there
	Since   time.Time `json:"since"`   // by the clock of that machine
	ID      string    `json:"id"`      // unique to the process
}

func (o Owner) String() string {
	if o.ID == "" {
		return "unknown: its entry cannot be read"
	}
	return fmt.Sprintf("flowhost on %s, process %d, since %s", o.Host, o.Process, o.Since.Format(time.RFC3339))
}

// HeldError reports that another host uses the journal, and has been seen to.
type HeldError struct{ Owner Owner }

func (e *HeldError) Error() string {
	return fmt.Sprintf("another host uses the journal on this NATS server: %s. Stop it first, or give this host a server or an account of its own", e.Owner)
}

// LostError reports that another host has taken the journal over.
type LostError struct{ Owner Owner }

func (e *LostError) Error() string {
	return fmt.Sprintf("another host has taken the journal over, since this one was not seen for %s: %s", leaseExpire, e.Owner)
}

// LeaseConfig configures a lease. Owner is required.
type LeaseConfig struct {
	Owner  Owner
	Renew  time.Duration // between two renewals; default 1s
	Expire time.Duration // without a renewal, after which another host may take the lease; default 5s
	Log    *slog.Logger  // default: none
}

// Lease is the right to be the only host on a journal of an external server: one message
// for a shard in stream FH_OWNER, which the owner stores again and again. Nobody compares
// clocks: whoever waits for the lease watches for its own time whether the message
// changes, and each change names the sequence that it follows.
type Lease struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	subject string
	streams bus.StreamConfig
	cfg     LeaseConfig
	log     *slog.Logger

	mu  sync.Mutex // held while it is written
	seq uint64     // of the owner's last message; guarded by mu
}

// leaseEntry is the message of a shard.
type leaseEntry struct {
	seq   uint64 // 0: there is none
	free  bool
	owner Owner
}

// AcquireLease makes the lease of a shard this host's. If there is an owner it waits until
// that one has renewed the lease, which gives a *HeldError, or has not for the time in
// which it would have. The connection stays the caller's.
func AcquireLease(ctx context.Context, nc *nats.Conn, shard int, streams bus.StreamConfig, cfg LeaseConfig) (*Lease, error) {
	if cfg.Renew <= 0 {
		cfg.Renew = leaseRenew
	}
	if cfg.Expire <= 0 {
		cfg.Expire = leaseExpire
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("owner of the journal: %w", err)
	}
	l := &Lease{nc: nc, js: js, subject: bus.OwnerSubject(shard), streams: streams, cfg: cfg, log: jskit.Logger(cfg.Log)}
	if err := l.acquire(ctx); err != nil {
		if held := (*HeldError)(nil); errors.As(err, &held) {
			return nil, err
		}
		return nil, fmt.Errorf("owner of the journal: %w", err)
	}
	return l, nil
}

func (l *Lease) acquire(ctx context.Context) error {
	var watched leaseEntry
	var since time.Time
	for {
		entry, err := l.read(ctx)
		switch {
		case err != nil:
			return err
		case watched.seq == 0 && !entry.free:
			watched, since = entry, time.Now()
			l.log.Warn("the journal has an owner: waiting to see whether it is still there",
				"host", entry.owner.Host, "process", entry.owner.Process, "since", entry.owner.Since, "at_most", l.cfg.Expire)
		case !entry.free && entry.seq != watched.seq:
			return &HeldError{entry.owner}
		case entry.free || time.Since(since) >= l.cfg.Expire:
			err := l.write(ctx, entry.seq)
			if err == nil {
				return bus.ProvisionOwner(ctx, l.nc, l.streams)
			}
			if !jskit.IsConflict(err) {
				return err
			}
		}
		if err := pause(ctx, l.cfg.Renew/4); err != nil {
			return err
		}
	}
}

// Run renews the lease until ctx ends, and returns its cause, or a *LostError once another
// host has it. While the server cannot be reached it tries again.
func (l *Lease) Run(ctx context.Context) error {
	failing := false
	for {
		if err := pause(ctx, l.cfg.Renew); err != nil {
			return err
		}
		err := l.renew(ctx)
		if lost := (*LostError)(nil); errors.As(err, &lost) || errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		if err != nil && !failing && ctx.Err() == nil {
			l.log.Warn("the lease of the journal is not renewed: another host that starts now may take the journal over", "error", err)
		}
		failing = err != nil
	}
}

func (l *Lease) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.write(ctx, l.seq)
	if !jskit.IsConflict(err) && !errors.Is(err, jetstream.ErrNoStreamResponse) {
		return err
	}
	// Either the acknowledgement of an earlier renewal was lost, or the message, or the lease.
	entry, err := l.read(ctx)
	switch {
	case err != nil:
		return err
	case entry.seq > 0 && !entry.free && entry.owner.ID != l.cfg.Owner.ID:
		return &LostError{entry.owner}
	}
	return l.write(ctx, entry.seq)
}

// Release gives the lease up, so that another host need not wait for its end. Run must
// have returned.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.publish(ctx, nil, l.seq)
	if !jskit.IsConflict(err) {
		return err
	}
	// A renewal whose acknowledgement nobody waited for, or the lease was lost.
	entry, err := l.read(ctx)
	switch {
	case err != nil || entry.free:
		return err
	case entry.owner.ID != l.cfg.Owner.ID:
		return &LostError{entry.owner}
	}
	_, err = l.publish(ctx, nil, entry.seq)
	return err
}

// read gives the present message, and makes the stream where it is missing.
func (l *Lease) read(ctx context.Context) (leaseEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	stream, err := l.js.Stream(ctx, bus.StreamOwner)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return leaseEntry{free: true}, bus.ProvisionOwner(ctx, l.nc, l.streams)
	}
	if err != nil {
		return leaseEntry{}, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, l.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return leaseEntry{free: true}, nil
	}
	if err != nil {
		return leaseEntry{}, err
	}
	entry := leaseEntry{seq: msg.Sequence, free: len(msg.Data) == 0}
	if json.Unmarshal(msg.Data, &entry.owner) != nil {
		entry.owner = Owner{}
	}
	return entry, nil
}

// write stores the owner after the message of a sequence, 0 for none.
func (l *Lease) write(ctx context.Context, after uint64) error {
	body, err := json.Marshal(l.cfg.Owner)
	if err != nil {
		return err
	}
	seq, err := l.publish(ctx, body, after)
	if err == nil {
		l.seq = seq
	}
	return err
}

func (l *Lease) publish(ctx context.Context, body []byte, after uint64) (uint64, error) {
	if err := jskit.Usable(l.nc); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, &nats.Msg{Subject: l.subject, Data: body},
		jetstream.WithExpectLastSequencePerSubject(after), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// pause waits, or gives the cause of the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
