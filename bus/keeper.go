package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// keepEvery is the time between two looks whether the streams are there.
const keepEvery = 2 * time.Second

// KeeperConfig configures a keeper. Engine and App are required; they may be the same.
type KeeperConfig struct {
	Engine, App *nats.Conn
	Streams     StreamConfig
	Sync        func() error  // flushes the files of streams that were made to the disk; default: nothing, they are the server's
	Every       time.Duration // between two looks; default 2s
	Log         *slog.Logger  // default: none
}

// Keeper makes the streams and looks after them: somebody may remove one from an
// external server, or its files may be lost. Those that runs do not depend on are made
// again, and the loss is an error in the log.
type Keeper struct {
	cfg  KeeperConfig
	last map[string]uint64 // messages of each stream at the last look; of Run

	making  sync.Mutex   // held while streams are made or changed
	streams StreamConfig // guarded by making
}

// NewKeeper makes a keeper. The connections stay the caller's.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Every <= 0 {
		cfg.Every = keepEvery
	}
	cfg.Log = jskit.Logger(cfg.Log)
	return &Keeper{cfg: cfg, last: map[string]uint64{}, streams: cfg.Streams}
}

// required are the streams without which runs cannot be recovered.
func required() []string {
	return []string{StreamJournal, BucketStream(BucketSnapshots), BucketStream(BucketBlobs)}
}

// replaceable are the streams of the engine's account that can be made again.
func replaceable() []string {
	return []string{StreamTriggers, StreamHistory, StreamMarks, StreamDeadLetter, StreamLogs}
}

// Provision makes the streams, or changes them to fit. A *ProvisionError refuses what
// would lose something, and a journal whose snapshots or blobs are gone. That a journal
// itself is gone shows when it is compared with what was published of it.
func (k *Keeper) Provision(ctx context.Context) error {
	there, err := k.look(ctx)
	if err != nil {
		return err
	}
	missing := func(name string) bool { return there[name] == nil }
	used := !missing(StreamJournal) && there[StreamJournal].State.LastSeq > 0
	for _, name := range required() {
		if used && missing(name) {
			return k.gone(name, "it is missing, and the journal is there")
		}
	}
	if err := k.make(ctx, nil); err != nil {
		return err
	}
	k.compare(ctx, there)
	for _, name := range slices.Concat([]string{StreamJournal}, replaceable(), []string{StreamEvents}) {
		if missing(name) && (used || name == StreamJournal && len(there) > 0) {
			k.cfg.Log.Error("a stream was missing and is made again: what it held is lost", "stream", name, "held", holds(name))
		}
	}
	return nil
}

// Configure replaces the configuration of the streams and changes them to fit, while Run
// looks after them. The error of [Keeper.Provision] refuses it: the configuration stays,
// and so do the streams, except those before the refused one.
func (k *Keeper) Configure(ctx context.Context, streams StreamConfig) error {
	before, err := k.look(ctx)
	if err != nil {
		return err
	}
	err = k.make(ctx, &streams)
	k.compare(ctx, before)
	return err
}

// make makes the streams that are missing and changes the others to fit a configuration,
// which becomes the keeper's, or its present one.
func (k *Keeper) make(ctx context.Context, next *StreamConfig) error {
	k.making.Lock()
	defer k.making.Unlock()
	streams := k.streams
	if next != nil {
		streams = *next
	}
	err := ProvisionJournal(ctx, k.cfg.Engine, streams)
	if err == nil {
		err = Provision(ctx, k.cfg.Engine, streams)
	}
	if err == nil {
		err = ProvisionEvents(ctx, k.cfg.App, streams)
	}
	if err == nil && k.cfg.Sync != nil {
		err = k.cfg.Sync()
	}
	if err == nil {
		k.streams = streams
	}
	return err
}

// compare logs which limits of streams differ from those of before.
func (k *Keeper) compare(ctx context.Context, before map[string]*jetstream.StreamInfo) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now, err := k.info(ctx, name); err == nil { // otherwise Run reports it
			k.compareLimits(name, before[name], now)
		}
	}
}

func (k *Keeper) compareLimits(name string, before, now *jetstream.StreamInfo) {
	number := func(n int64) any { return n }
	age := func(n int64) any { return time.Duration(n) }
	for _, limit := range []struct {
		name     string
		old, new int64
		show     func(int64) any
	}{
		{"bytes", before.Config.MaxBytes, now.Config.MaxBytes, number},
		{"age", int64(before.Config.MaxAge), int64(now.Config.MaxAge), age},
		{"messages per subject", before.Config.MaxMsgsPerSubject, now.Config.MaxMsgsPerSubject, number},
	} {
		if limit.old == limit.new {
			continue
		}
		log := k.cfg.Log.With("stream", name, "limit", limit.name, "old", limit.show(limit.old), "new", limit.show(limit.new))
		if lowers(limit.old, limit.new) && now.Config.Discard == jetstream.DiscardOld {
			log.Warn("a limit of a stream is lowered: the server removes the oldest messages beyond it", "messages_before", before.State.Msgs, "messages", now.State.Msgs)
			continue
		}
		log.Info("a limit of a stream is changed")
	}
}

// lowers reports whether a limit of a stream becomes tighter; 0 and less is none.
func lowers(was, now int64) bool { return now > 0 && (was <= 0 || now < was) }

// look finds the streams that are there.
func (k *Keeper) look(ctx context.Context) (map[string]*jetstream.StreamInfo, error) {
	there := map[string]*jetstream.StreamInfo{}
	for _, name := range slices.Concat(required(), replaceable(), []string{StreamEvents}) {
		info, err := k.info(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			continue
		case err != nil:
			return nil, fmt.Errorf("stream %s: %w", name, err)
		}
		there[name] = info
	}
	return there, nil
}

func (k *Keeper) info(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	nc := k.cfg.Engine
	if name == StreamEvents {
		nc = k.cfg.App
	}
	if err := jskit.Usable(nc); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

// Run looks after the streams until ctx ends, and returns its cause, or a
// *ProvisionError when a required one is gone.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(k.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := k.keep(ctx); err != nil {
			return err
		}
	}
}

func (k *Keeper) keep(ctx context.Context) error {
	var gone []string
	for _, name := range slices.Concat(required(), replaceable(), []string{StreamEvents}) {
		info, err := k.info(ctx, name)
		switch {
		case err == nil:
			k.last[name] = info.State.Msgs
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return nil // the server is away, which the health of the journal shows
		case slices.Contains(required(), name):
			return k.gone(name, "somebody has removed it while the host ran")
		default:
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := k.make(ctx, nil); err != nil {
		k.cfg.Log.Error("streams are gone and cannot be made again", "streams", gone, "error", err)
		return nil
	}
	for _, name := range gone {
		k.cfg.Log.Error("a stream was removed and is made again: what it held is lost", "stream", name, "messages", k.last[name], "held", holds(name))
	}
	return nil
}

func (k *Keeper) gone(name, how string) error {
	return &ProvisionError{Stream: name, Reason: how + ": runs cannot be recovered without it. Put a backup of all streams FH_* and OBJ_FH_* in place; to start over, remove them all and journal.mark in the data directory, which forgets all runs"}
}

// holds is what is lost with a stream.
func holds(name string) string {
	switch name {
	case StreamJournal:
		return "runs that were not finished"
	case StreamTriggers:
		return "messages that were acknowledged and had made no run yet"
	case StreamHistory:
		return "records of finished runs"
	case StreamDeadLetter:
		return "messages that could make no run"
	case StreamLogs:
		return "what tasks wrote"
	case StreamMarks:
		return "how far others know of the journal, by which a lost end of it shows"
	}
	return "events for others to read; runs do not depend on them"
}
