package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
}

// NewKeeper makes a keeper. The connections stay the caller's.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Every <= 0 {
		cfg.Every = keepEvery
	}
	cfg.Log = jskit.Logger(cfg.Log)
	return &Keeper{cfg: cfg, last: map[string]uint64{}}
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
	there, used, err := k.look(ctx)
	if err != nil {
		return err
	}
	missing := func(name string) bool { return !slices.Contains(there, name) }
	for _, name := range required() {
		if used && missing(name) {
			return k.gone(name, "it is missing, and the journal is there")
		}
	}
	if err := k.make(ctx); err != nil {
		return err
	}
	for _, name := range slices.Concat([]string{StreamJournal}, replaceable(), []string{StreamEvents}) {
		if missing(name) && (used || name == StreamJournal && len(there) > 0) {
			k.cfg.Log.Error("a stream was missing and is made again: what it held is lost", "stream", name, "held", holds(name))
		}
	}
	return nil
}

func (k *Keeper) make(ctx context.Context) error {
	err := ProvisionJournal(ctx, k.cfg.Engine, k.cfg.Streams)
	if err == nil {
		err = Provision(ctx, k.cfg.Engine, k.cfg.Streams)
	}
	if err == nil {
		err = ProvisionEvents(ctx, k.cfg.App, k.cfg.Streams)
	}
	if err == nil && k.cfg.Sync != nil {
		err = k.cfg.Sync()
	}
	return err
}

// look finds the streams that are there, and whether the journal has ever been used.
func (k *Keeper) look(ctx context.Context) (there []string, used bool, err error) {
	for _, name := range slices.Concat(required(), replaceable(), []string{StreamEvents}) {
		info, err := k.info(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			continue
		case err != nil:
			return nil, false, fmt.Errorf("stream %s: %w", name, err)
		}
		used = used || name == StreamJournal && info.State.LastSeq > 0
		there = append(there, name)
	}
	return there, used, nil
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
	if err := k.make(ctx); err != nil {
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
