package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// Defaults of [StreamConfig], and limits of the streams that it does not set.
const (
	DefaultJournalBytes    = 4 << 30
	DefaultSnapshotBytes   = 1 << 30
	DefaultBlobBytes       = 2 << 30
	DefaultTriggerBytes    = 1 << 30
	DefaultEventBytes      = 256 << 20
	DefaultEventAge        = 7 * 24 * time.Hour
	DefaultDeadLetterBytes = 256 << 20
	DefaultDeadLetterAge   = 30 * 24 * time.Hour
	DefaultHistoryBytes    = 4 << 30
	DefaultHistoryAge      = 30 * 24 * time.Hour
	DefaultHistoryPerFlow  = 100_000
	DefaultLogBytes        = 512 << 20
	DefaultLogAge          = 7 * 24 * time.Hour
)

// duplicates is how long a stream knows a message by its Nats-Msg-Id.
const duplicates = 2 * time.Minute

// OwnDuplicates is that of streams that this process writes often: the server
// keeps each id in memory, about 200 bytes, and a message is sent again within
// seconds or not at all. The journal needs it least: a commit that was stored is
// found by what it follows.
const OwnDuplicates = 15 * time.Second

// StreamConfig sets the size of the streams. A zero field leaves an existing
// stream as it is, and gives a new one the default.
type StreamConfig struct {
	JournalBytes    int64         // default DefaultJournalBytes; a full journal refuses appends
	SnapshotBytes   int64         // default DefaultSnapshotBytes; a full bucket refuses objects
	BlobBytes       int64         // default DefaultBlobBytes; a full bucket refuses objects
	TriggerBytes    int64         // default DefaultTriggerBytes; a full stream refuses publishers
	EventBytes      int64         // default DefaultEventBytes; the oldest are dropped
	EventAge        time.Duration // default DefaultEventAge
	DeadLetterBytes int64         // default DefaultDeadLetterBytes; the oldest are dropped
	DeadLetterAge   time.Duration // default DefaultDeadLetterAge
	HistoryBytes    int64         // of records of finished runs, default DefaultHistoryBytes; the oldest are dropped
	HistoryAge      time.Duration // default DefaultHistoryAge
	HistoryPerFlow  int64         // records of one flow in one state, default DefaultHistoryPerFlow; -1 for any number
	LogBytes        int64         // of tasks' logs, default DefaultLogBytes; the oldest are dropped
	LogAge          time.Duration // default DefaultLogAge
	Replicas        int           // default 1
}

// ProvisionError reports that a stream cannot be made what it must be without losing
// what it holds.
type ProvisionError struct {
	Stream string
	Reason string // what is in the way and what to do
}

func (e *ProvisionError) Error() string { return "stream " + e.Stream + ": " + e.Reason }

// ProvisionJournal makes the stream of the journal and the buckets of snapshots and
// blobs, or changes them to fit. It refuses, with a *ProvisionError, what would drop
// something of them or copies of it.
func ProvisionJournal(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	err := provision(ctx, nc, jetstream.StreamConfig{
		Name: StreamJournal, Subjects: []string{PrefixJournal + "*"},
		Description: "what happened to runs; written by the engine only",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxBytes: cfg.JournalBytes, Replicas: cfg.Replicas, Duplicates: OwnDuplicates,
	}, DefaultJournalBytes, 0)
	if err == nil {
		err = provisionBucket(ctx, nc, BucketSnapshots, "states of the journal, from which a start goes on", cfg.SnapshotBytes, DefaultSnapshotBytes, cfg)
	}
	if err == nil {
		err = provisionBucket(ctx, nc, BucketBlobs, "large inputs and outputs of runs, by digest", cfg.BlobBytes, DefaultBlobBytes, cfg)
	}
	return err
}

func provisionBucket(ctx context.Context, nc *nats.Conn, bucket, description string, size, usual int64, cfg StreamConfig) error {
	return provision(ctx, nc, jetstream.StreamConfig{
		Name: BucketStream(bucket), Subjects: BucketSubjects(bucket),
		Description: description,
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxBytes: size, Replicas: cfg.Replicas, Duplicates: OwnDuplicates,
		AllowRollup: true, AllowDirect: true,
	}, usual, 0)
}

// Provision makes the streams of triggers, history, marks, dead letters and logs beside
// those of [ProvisionJournal], or changes them to fit.
func Provision(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	err := provision(ctx, nc, jetstream.StreamConfig{
		Name: StreamTriggers, Subjects: []string{PrefixTrigger + "*"},
		Description: "messages that ask for a run; removed some minutes after they were decided",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxBytes: cfg.TriggerBytes, Replicas: cfg.Replicas, Duplicates: duplicates,
		MaxMsgSize: jskit.MaxPayload, // an external server may allow more than a reader pulls
	}, DefaultTriggerBytes, 0)
	if err == nil {
		err = provisionHistory(ctx, nc, cfg)
	}
	if err == nil {
		err = provisionMarks(ctx, nc, cfg.Replicas)
	}
	if err != nil {
		return err
	}
	err = provision(ctx, nc, jetstream.StreamConfig{
		Name: StreamDeadLetter, Subjects: []string{PrefixDeadLetter + "*"},
		Description: "messages that cannot make a run, with the reason in a header",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: cfg.DeadLetterBytes, MaxAge: cfg.DeadLetterAge, Replicas: cfg.Replicas, Duplicates: duplicates,
	}, DefaultDeadLetterBytes, DefaultDeadLetterAge)
	if err != nil {
		return err
	}
	return provisionLogs(ctx, nc, cfg)
}

// ProvisionEvents makes the stream of events, or changes it to fit. It may be in
// another account than the others.
func ProvisionEvents(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	events := jetstream.StreamConfig{
		Name: StreamEvents, Subjects: []string{prefixEvents + "*.*"},
		Description: "a copy of what happened to runs; nothing is recovered from it",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: cfg.EventBytes, MaxAge: cfg.EventAge, Replicas: cfg.Replicas, Duplicates: OwnDuplicates,
	}
	if cfg.Replicas <= 1 {
		events.PersistMode = jetstream.AsyncPersistMode
	}
	return provision(ctx, nc, events, DefaultEventBytes, DefaultEventAge)
}

// markBytes bounds the streams of marks and of owners.
const markBytes = 1 << 20

// provisionMarks makes the stream that holds one message for each shard. With async
// persistence a mark costs no fsync, which the journal would have to wait for.
func provisionMarks(ctx context.Context, nc *nats.Conn, replicas int) error {
	marks := jetstream.StreamConfig{
		Name: StreamMarks, Subjects: []string{prefixMark + "*"},
		Description: "how far others know of each journal",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: markBytes, MaxMsgsPerSubject: 1, Replicas: replicas, Duplicates: OwnDuplicates,
	}
	if replicas <= 1 {
		marks.PersistMode = jetstream.AsyncPersistMode
	}
	return provision(ctx, nc, marks, markBytes, 0)
}

// ProvisionOwner makes the stream that names the owner of each shard's journal, or changes
// it to fit. Nothing is lost with it: an owner stores its message again.
func ProvisionOwner(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	owner := jetstream.StreamConfig{
		Name: StreamOwner, Subjects: []string{prefixOwner + "*"},
		Description: "which host uses each journal",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: markBytes, MaxMsgsPerSubject: 1, Replicas: cfg.Replicas, Duplicates: OwnDuplicates,
	}
	if cfg.Replicas <= 1 {
		owner.PersistMode = jetstream.AsyncPersistMode
	}
	return provision(ctx, nc, owner, markBytes, 0)
}

func provisionHistory(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	history := jetstream.StreamConfig{
		Name: StreamHistory, Subjects: []string{HistorySubjects, historyPartSubjects, FlushSubject(StreamHistory)},
		Description: "records of finished runs",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: cfg.HistoryBytes, MaxAge: cfg.HistoryAge, MaxMsgsPerSubject: cfg.HistoryPerFlow,
		Replicas: cfg.Replicas, Duplicates: OwnDuplicates,
	}
	if cfg.Replicas <= 1 {
		history.PersistMode = jetstream.AsyncPersistMode // the journal holds runs until they are flushed
	}
	return provision(ctx, nc, history, DefaultHistoryBytes, DefaultHistoryAge)
}

func provisionLogs(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	logs := jetstream.StreamConfig{
		Name: StreamLogs, Subjects: []string{PrefixLog + "*.*"},
		Description: "what tasks wrote while they ran",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: cfg.LogBytes, MaxAge: cfg.LogAge, Replicas: cfg.Replicas, Duplicates: OwnDuplicates,
	}
	if cfg.Replicas <= 1 {
		logs.PersistMode = jetstream.AsyncPersistMode // nothing is recovered from them
	}
	return provision(ctx, nc, logs, DefaultLogBytes, DefaultLogAge)
}

// provision creates or updates one stream. Zero sizes of want are those of the
// existing stream, or else the given defaults.
func provision(ctx context.Context, nc *nats.Conn, want jetstream.StreamConfig, size int64, age time.Duration) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("stream %s: %w", want.Name, err)
	}
	if !slices.Contains([]string{StreamHistory, StreamMarks, StreamOwner}, want.Name) {
		want.MaxMsgsPerSubject = -1
	}
	stream, err := js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = js.CreateStream(ctx, filled(want, jetstream.StreamConfig{MaxBytes: size, MaxAge: age, MaxMsgsPerSubject: DefaultHistoryPerFlow, Replicas: 1}))
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
	if want.MaxMsgsPerSubject == 0 {
		want.MaxMsgsPerSubject = from.MaxMsgsPerSubject
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
	if have.AllowMsgTTL || have.AllowMsgSchedules || have.AllowMsgCounter {
		return &ProvisionError{Stream: want.Name, Reason: "it allows publishers to set when messages expire or are sent, or to count, and the server cannot forbid that afterwards: move it away by the NATS command line first"}
	}
	if keepsAll(want.Name) {
		want.MaxAge = 0 // nothing ages out, whatever the stream has now
		if err := keeps(info, want); err != nil {
			return err
		}
	}
	next := have
	next.Description, next.Subjects, next.Retention, next.Discard = want.Description, want.Subjects, want.Retention, want.Discard
	next.MaxBytes, next.MaxAge, next.Replicas, next.Duplicates = want.MaxBytes, want.MaxAge, want.Replicas, want.Duplicates
	next.MaxMsgSize, next.MaxMsgs, next.MaxMsgsPerSubject = want.MaxMsgSize, -1, want.MaxMsgsPerSubject
	next.AllowRollup, next.AllowAtomicPublish, next.AllowBatchPublish = want.AllowRollup, want.AllowAtomicPublish, want.AllowBatchPublish
	next.SubjectTransform, next.RePublish, next.NoAck = nil, nil, false
	if reflect.DeepEqual(next, have) {
		return nil
	}
	_, err := js.UpdateStream(ctx, next)
	return err
}

// keepsAll reports whether nothing of a stream may be lost.
func keepsAll(stream string) bool {
	return stream == StreamJournal || stream == BucketStream(BucketSnapshots) || stream == BucketStream(BucketBlobs)
}

// keeps refuses changes after which messages, or copies of them, would be gone: the
// server removes the oldest messages to get below a new limit.
func keeps(info *jetstream.StreamInfo, want jetstream.StreamConfig) error {
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
