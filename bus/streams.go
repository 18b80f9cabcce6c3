package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Defaults of [StreamConfig], and limits of the streams that it does not set.
const (
	DefaultJournalBytes    = 4 << 30
	DefaultTriggerBytes    = 1 << 30
	DefaultEventBytes      = 1 << 30
	DefaultEventAge        = 7 * 24 * time.Hour
	DefaultDeadLetterBytes = 256 << 20
	DefaultDeadLetterAge   = 30 * 24 * time.Hour

	// duplicates is how long a stream knows a message by its Nats-Msg-Id.
	duplicates = 2 * time.Minute
)

// StreamConfig sets the size of the streams. A zero field leaves an existing
// stream as it is, and gives a new one the default.
type StreamConfig struct {
	JournalBytes    int64         // default DefaultJournalBytes; a full journal refuses appends
	TriggerBytes    int64         // default DefaultTriggerBytes; a full stream refuses publishers
	EventBytes      int64         // default DefaultEventBytes; the oldest are dropped
	EventAge        time.Duration // default DefaultEventAge
	DeadLetterBytes int64         // default DefaultDeadLetterBytes; the oldest are dropped
	DeadLetterAge   time.Duration // default DefaultDeadLetterAge
	Replicas        int           // default 1
}

// ProvisionError says that a stream cannot be made what it must be without losing
// what it holds.
type ProvisionError struct {
	Stream string
	Reason string // what is in the way and what to do
}

func (e *ProvisionError) Error() string { return "stream " + e.Stream + ": " + e.Reason }

// ProvisionJournal makes the stream of the journal, or changes it to fit. It
// refuses, with a *ProvisionError, what would drop commits or copies of them.
func ProvisionJournal(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	return provision(ctx, nc, jetstream.StreamConfig{
		Name: StreamJournal, Subjects: []string{prefixJournal + "*"},
		Description: "what happened to runs; written by the engine only",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxBytes: cfg.JournalBytes, Replicas: cfg.Replicas, Duplicates: duplicates,
	}, DefaultJournalBytes, 0)
}

// Provision makes the streams of triggers, events and dead letters, or changes
// them to fit.
func Provision(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	err := provision(ctx, nc, jetstream.StreamConfig{
		Name: StreamTriggers, Subjects: []string{prefixTrigger + "*"},
		Description: "messages that ask for a run; removed some minutes after they were decided",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxBytes: cfg.TriggerBytes, Replicas: cfg.Replicas, Duplicates: duplicates,
		MaxMsgSize: MaxPayload, // an external server may allow more than a reader pulls
	}, DefaultTriggerBytes, 0)
	if err != nil {
		return err
	}
	events := jetstream.StreamConfig{
		Name: StreamEvents, Subjects: []string{prefixRun + "*.*.*"},
		Description: "what happened to runs, for others to follow",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: cfg.EventBytes, MaxAge: cfg.EventAge, Replicas: cfg.Replicas, Duplicates: duplicates,
	}
	if cfg.Replicas <= 1 {
		// Events are derived from the journal: what a crash loses is published again.
		events.PersistMode = jetstream.AsyncPersistMode
	}
	if err := provision(ctx, nc, events, DefaultEventBytes, DefaultEventAge); err != nil {
		return err
	}
	return provision(ctx, nc, jetstream.StreamConfig{
		Name: StreamDeadLetter, Subjects: []string{prefixDeadLetter + "*"},
		Description: "messages that cannot make a run, with the reason in a header",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: cfg.DeadLetterBytes, MaxAge: cfg.DeadLetterAge, Replicas: cfg.Replicas, Duplicates: duplicates,
	}, DefaultDeadLetterBytes, DefaultDeadLetterAge)
}

// provision creates or updates one stream. Zero sizes of want are those of the
// existing stream, or else the given defaults.
func provision(ctx context.Context, nc *nats.Conn, want jetstream.StreamConfig, size int64, age time.Duration) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("stream %s: %w", want.Name, err)
	}
	stream, err := js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = js.CreateStream(ctx, filled(want, jetstream.StreamConfig{MaxBytes: size, MaxAge: age, Replicas: 1}))
	case err == nil:
		err = update(ctx, js, stream.CachedInfo(), want)
	}
	var refused *ProvisionError
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("stream %s: %w", want.Name, err)
	}
	return err
}

func filled(want, from jetstream.StreamConfig) jetstream.StreamConfig {
	if want.MaxBytes == 0 {
		want.MaxBytes = from.MaxBytes
	}
	if want.MaxAge == 0 {
		want.MaxAge = from.MaxAge
	}
	if want.Replicas == 0 {
		want.Replicas = from.Replicas
	}
	if want.MaxMsgSize == 0 {
		want.MaxMsgSize = -1
	}
	return want
}

func update(ctx context.Context, js jetstream.JetStream, info *jetstream.StreamInfo, want jetstream.StreamConfig) error {
	have := info.Config
	want = filled(want, have)
	if want.Name == StreamJournal {
		want.MaxAge = 0 // commits never age out, whatever the stream says now
		if err := keepsJournal(info, want); err != nil {
			return err
		}
	}
	next := have
	next.Description, next.Subjects, next.Retention, next.Discard = want.Description, want.Subjects, want.Retention, want.Discard
	next.MaxBytes, next.MaxAge, next.Replicas, next.Duplicates = want.MaxBytes, want.MaxAge, want.Replicas, want.Duplicates
	next.MaxMsgSize, next.MaxMsgs, next.MaxMsgsPerSubject = want.MaxMsgSize, -1, -1
	if reflect.DeepEqual(next, have) {
		return nil
	}
	_, err := js.UpdateStream(ctx, next)
	return err
}

// keepsJournal refuses changes after which commits, or copies of them, would be
// gone: the server removes the oldest messages to get below a new limit.
func keepsJournal(info *jetstream.StreamInfo, want jetstream.StreamConfig) error {
	refuse := func(format string, args ...any) error {
		return &ProvisionError{Stream: want.Name, Reason: fmt.Sprintf(format, args...)}
	}
	have := info.Config
	switch {
	case want.MaxBytes > 0 && info.State.Bytes > uint64(want.MaxBytes):
		return refuse("it holds %d bytes and cannot be limited to %d: give a larger limit", info.State.Bytes, want.MaxBytes)
	case want.Replicas < have.Replicas:
		return refuse("it has %d replicas and would be left with %d: ask for %d, or lower them by the NATS command line first", have.Replicas, want.Replicas, have.Replicas)
	case have.Storage != want.Storage:
		return refuse("it is not stored in files: move it away by the NATS command line first")
	case have.Mirror != nil || len(have.Sources) > 0:
		return refuse("it copies another stream, and then the engine would not be its only writer: remove mirror and sources first")
	}
	return nil
}
