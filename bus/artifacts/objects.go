package artifacts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/ops"
)

// Bucket is the bucket of objects that [Objects] uses.
const Bucket = "FH_ARTIFACTS"

// contentType is the key of the content type in the metadata of an object.
const contentType = "content_type"

// minQuota is the least size of a bucket that the settings give none: several of the largest
// outputs.
const minQuota = 64 << 20

// DefaultLeftover is how long nothing may have been written of an artifact that is not
// committed, before it is taken for what a crash has left.
const DefaultLeftover = time.Hour

// ObjectsConfig configures [Objects]. Its zero value works, but for Conn.
type ObjectsConfig struct {
	Conn     *nats.Conn    // stays the caller's
	Quota    int64         // of the bucket in bytes; 0: an existing one stays as it is, and a new one gets DefaultQuota, or half of the room that the server has left
	Replicas int           // of a new bucket; default 1
	Existing bool          // a bucket that is missing is ErrNotFound, and not made
	Leftover time.Duration // default DefaultLeftover
	Timeout  time.Duration // of one request to the server; default 5s
	Log      *slog.Logger  // default: none
}

// Objects keeps artifacts in a bucket of objects, laid out as the NATS tools expect it:
// messages with the content, and then one with name, size and digest. The name of an object
// is that of the artifact. The time of that last message is when the artifact was last
// retained, and its sequence is expected by whoever changes or removes it: several hosts may
// share the bucket.
//
// nats.go writes objects too, from a reader and without waiting for the parts; here the
// parts come as a guest sends them, and each is acknowledged.
type Objects struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	cfg    ObjectsConfig
}

// OpenObjects opens the bucket, which it creates when it is missing, and removes what
// crashes have left.
func OpenObjects(ctx context.Context, cfg ObjectsConfig) (*Objects, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Leftover <= 0 {
		cfg.Leftover = DefaultLeftover
	}
	cfg.Replicas = max(cfg.Replicas, 1)
	cfg.Log = jskit.Logger(cfg.Log)
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", Bucket, err)
	}
	o := &Objects{nc: cfg.Conn, js: js, cfg: cfg}
	if err := o.provision(ctx); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", Bucket, err)
	}
	if err := o.sweepLeftovers(ctx); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", Bucket, err)
	}
	return o, nil
}

// provision finds or makes the bucket, and gives it the size of the settings.
func (o *Objects) provision(ctx context.Context) error {
	ctx, cancel := o.timed(ctx)
	defer cancel()
	stream, err := o.js.Stream(ctx, bus.BucketStream(Bucket))
	if errors.Is(err, jetstream.ErrStreamNotFound) && o.cfg.Existing {
		return ErrNotFound
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = o.create(ctx); err == nil || errors.Is(err, jetstream.ErrBucketExists) {
			stream, err = o.js.Stream(ctx, bus.BucketStream(Bucket))
		}
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo()
	if o.cfg.Quota > 0 && o.cfg.Quota != have.Config.MaxBytes {
		if have.State.Bytes > uint64(o.cfg.Quota) {
			return fmt.Errorf("it holds %d bytes and cannot be limited to %d: give a larger quota", have.State.Bytes, o.cfg.Quota)
		}
		next := have.Config
		next.MaxBytes = o.cfg.Quota
		if stream, err = o.js.UpdateStream(ctx, next); err != nil {
			return err
		}
	}
	o.stream = stream
	return nil
}

// create makes the bucket. The server reserves its size, so that without a setting it has
// what fits.
func (o *Objects) create(ctx context.Context) error {
	cfg := jetstream.ObjectStoreConfig{Bucket: Bucket, Description: "artifacts of tasks, by digest", Replicas: o.cfg.Replicas, Storage: jetstream.FileStorage}
	create := func(bytes int64) error {
		cfg.MaxBytes = bytes
		_, err := o.js.CreateObjectStore(ctx, cfg)
		return err
	}
	if o.cfg.Quota > 0 {
		return create(o.cfg.Quota)
	}
	return jskit.Fit(DefaultQuota, minQuota, create, func(bytes int64) error {
		if bytes < DefaultQuota {
			o.cfg.Log.Warn("the server has no room for a bucket of artifacts of the usual size: give the server more, and set artifacts.size",
				"bucket", Bucket, "bytes", bytes, "usual", int64(DefaultQuota))
		}
		cfg.MaxBytes = bytes
		_, err := o.js.UpdateObjectStore(ctx, cfg)
		return err
	})
}

func (o *Objects) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, o.cfg.Timeout)
}

// content is the subject of an object's parts.
func content(id string) string { return "$O." + Bucket + ".C." + id }

// label is the subject of an object's description.
func label(name string) string {
	return "$O." + Bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// object is the description of an object that is in the bucket.
type object struct {
	jetstream.ObjectInfo
	sequence uint64    // of the message that describes it, or says that it was deleted; 0 for none
	retained time.Time // the time of that message
}

// find reads the description of an object. Errors: ErrNotFound, with the sequence that a
// new object follows; ErrDamaged.
func (o *Objects) find(ctx context.Context, name string) (*object, error) {
	ctx, cancel := o.timed(ctx)
	defer cancel()
	msg, err := o.stream.GetLastMsgForSubject(ctx, label(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return &object{}, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	found := &object{sequence: msg.Sequence, retained: msg.Time}
	switch err := json.Unmarshal(msg.Data, &found.ObjectInfo); {
	case err != nil || found.Name != name || !found.Deleted && found.NUID == "":
		return nil, fmt.Errorf("the description of object %s cannot be read: %w", name, ErrDamaged)
	case found.Deleted:
		return found, ErrNotFound
	}
	return found, nil
}

// describe writes the description of an object, if the last one is that with the sequence;
// 0 is for none. It reports whether it did.
func (o *Objects) describe(ctx context.Context, info *jetstream.ObjectInfo, sequence uint64) (bool, error) {
	text, err := json.Marshal(info)
	if err != nil {
		return false, err
	}
	err = o.publish(ctx, &nats.Msg{Subject: label(info.Name), Data: text, Header: nats.Header{
		jetstream.MsgRollup: {jetstream.MsgRollupSubject},
	}}, jetstream.WithExpectLastSequencePerSubject(sequence))
	if jskit.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// publish stores one message. A repetition by the caller would store it twice.
func (o *Objects) publish(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) error {
	if err := jskit.Usable(o.nc); err != nil {
		return err
	}
	_, err := ops.Publish(ctx, o.js, msg, o.cfg.Timeout, opts...)
	if jskit.IsFull(err) {
		return fmt.Errorf("%w (%w)", ErrFull, err)
	}
	return err
}

// purge removes messages to which no description leads. What it leaves goes with a sweep.
func (o *Objects) purge(ctx context.Context, subject string) {
	ctx, cancel := o.timed(ctx)
	defer cancel()
	if err := o.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		o.cfg.Log.Warn("the content of an artifact could not be removed, a sweep removes it", "bucket", Bucket, "error", err)
	}
}

// refresh writes a description again, which makes it as old as a new one. It reports false
// when somebody else has changed it.
func (o *Objects) refresh(ctx context.Context, found *object) (bool, error) {
	return o.describe(ctx, &found.ObjectInfo, found.sequence)
}

// maxContention is how often a description is read again that others change as well.
const maxContention = 16

// Retain implements [Store]. The server's clock counts, not now.
func (o *Objects) Retain(ctx context.Context, digests []string, _ time.Time) error {
	for _, digest := range digests {
		n := name(digest)
		if n == "" {
			return fmt.Errorf("%.80q: %w", digest, ErrNotFound)
		}
		if err := o.retain(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", digest, err)
		}
	}
	return nil
}

func (o *Objects) retain(ctx context.Context, name string) error {
	for range maxContention {
		found, err := o.find(ctx, name)
		if err != nil {
			return err
		}
		if done, err := o.refresh(ctx, found); done || err != nil {
			return err
		}
	}
	return errContention
}

var errContention = errors.New("other hosts change the artifact all the time: try again")
