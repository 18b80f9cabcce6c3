package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

const (
	// chunkBytes is the size of an object's messages where the server takes them:
	// each costs an fsync.
	chunkBytes = 1 << 20

	// DefaultGrace is how old the parts of an object must be that was never finished,
	// to be removed.
	DefaultGrace = 10 * time.Minute
)

// ErrBucketFull is what Put fails with when the bucket, or what the server may use
// of the disk, is full. An object of that name is still as it was.
var ErrBucketFull = errors.New("the bucket is full: delete objects, or raise the size of its stream")

// ObjectError reports that an object is damaged: parts of it are missing or changed.
type ObjectError struct {
	Bucket, Name string
	Reason       string
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("object %q of bucket %s is damaged: %s", e.Name, e.Bucket, e.Reason)
}

// ObjectsConfig configures a store of objects. Its zero value works.
type ObjectsConfig struct {
	Grace   time.Duration // of parts that another process may be writing; default DefaultGrace; negative when there can be no other, as with an embedded server
	Timeout time.Duration // of one request, after which it is repeated; default 5s
	Log     *slog.Logger  // default: none
}

// Objects is a bucket of objects, each of them some bytes with a name. An object is
// laid out as the NATS tools expect it: messages with its content, each Put under a
// separate subject, and then one with its name, size and digest. What was put is
// there as a whole or not at all. Its methods are safe for concurrent use.
//
// nats.go stores objects too, but writes the name without waiting for the content:
// when that fails, the object that was there before is lost.
type Objects struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	bucket  string
	timeout time.Duration
	log     *slog.Logger
}

// NewObjects opens a bucket that [bus.ProvisionJournal] has made, and removes what
// earlier processes left unfinished. The connection stays the caller's.
func NewObjects(ctx context.Context, nc *nats.Conn, bucket string, cfg ObjectsConfig) (*Objects, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	stream, err := js.Stream(ctx, bus.BucketStream(bucket))
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	o := &Objects{nc: nc, js: js, stream: stream, bucket: bucket, timeout: cfg.Timeout, log: jskit.Logger(cfg.Log)}
	if o.timeout <= 0 {
		o.timeout = 5 * time.Second
	}
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	return o, o.patiently(ctx, "clean up the bucket "+bucket, func(ctx context.Context) error {
		return o.sweep(ctx, max(cfg.Grace, 0))
	})
}

func (o *Objects) content(id string) string { return "$O." + o.bucket + ".C." + id }

func (o *Objects) label(name string) string {
	return "$O." + o.bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// Put stores an object, in the place of one with the same name, and returns when it
// is durable. While the server cannot be reached it waits, until ctx ends.
func (o *Objects) Put(ctx context.Context, name string, data []byte) error {
	return o.patiently(ctx, "store object "+name, func(ctx context.Context) error {
		return o.put(ctx, name, data)
	})
}

// Get gives an object's bytes, which are the caller's. Errors: fs.ErrNotExist,
// *ObjectError. While the server cannot be reached it waits, until ctx ends.
func (o *Objects) Get(ctx context.Context, name string) ([]byte, error) {
	var data []byte
	err := o.patiently(ctx, "read object "+name, func(ctx context.Context) (err error) {
		data, err = o.get(ctx, name)
		return err
	})
	return data, err
}

// Delete removes an object; one that is not there is no error. While the server
// cannot be reached it waits, until ctx ends.
func (o *Objects) Delete(ctx context.Context, name string) error {
	return o.patiently(ctx, "delete object "+name, func(ctx context.Context) error {
		return o.remove(ctx, name)
	})
}

// List gives the names of all objects, sorted. While the server cannot be reached it
// waits, until ctx ends.
func (o *Objects) List(ctx context.Context) ([]string, error) {
	var names []string
	err := o.patiently(ctx, "list the bucket "+o.bucket, func(ctx context.Context) (err error) {
		names, err = o.names(ctx)
		return err
	})
	return names, err
}

// patiently repeats what others can make possible again.
func (o *Objects) patiently(ctx context.Context, what string, try func(context.Context) error) error {
	p := jskit.Backoff{Log: o.log, What: what}
	for {
		err := context.Cause(ctx)
		if err == nil {
			err = jskit.Usable(o.nc)
		}
		if err == nil {
			err = try(ctx)
		}
		if err == nil {
			p.Done()
			return nil
		}
		if jskit.IsFull(err) {
			return fmt.Errorf("bucket %s: %w (%w)", o.bucket, ErrBucketFull, err)
		}
		var damaged *ObjectError
		if jskit.Permanent(err) || errors.Is(err, fs.ErrNotExist) || errors.As(err, &damaged) {
			return fmt.Errorf("bucket %s: %w", o.bucket, err)
		}
		if err := p.Wait(ctx, err); err != nil {
			return fmt.Errorf("bucket %s: %w", o.bucket, err)
		}
	}
}

// put stores the content, then the name, then removes the content of before: the
// object is there as a whole at any moment. An attempt that fails may leave content
// without a name, which goes when the bucket is opened next.
func (o *Objects) put(ctx context.Context, name string, data []byte) error {
	before, err := o.info(ctx, name)
	var damaged *ObjectError
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damaged) {
		return err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(o.chunk())}},
		Bucket:     o.bucket, NUID: rand.Text(), Size: uint64(len(data)), Digest: digest(data),
	}
	// An empty object has one empty message: so each name has its content.
	for first := true; first || len(data) > 0; first = false {
		part := data[:min(len(data), o.chunk())]
		if err := o.publish(ctx, &nats.Msg{Subject: o.content(info.NUID), Data: part}); err != nil {
			o.purge(ctx, o.content(info.NUID))
			return err
		}
		data = data[len(part):]
		info.Chunks++
	}
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	err = o.publish(ctx, &nats.Msg{Subject: o.label(name), Data: text, Header: nats.Header{
		jetstream.MsgRollup: {jetstream.MsgRollupSubject},
	}})
	if err == nil && before != nil {
		o.purge(ctx, o.content(before.NUID))
	}
	return err
}

func (o *Objects) chunk() int { return min(chunkBytes, int(o.nc.MaxPayload())-jskit.Overhead) }

// digest is the form in which the NATS tools keep it.
func digest(data []byte) string {
	h := sha256.New()
	h.Write(data)
	return jetstream.GetObjectDigestValue(h)
}

func (o *Objects) publish(ctx context.Context, msg *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	_, err := o.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(bus.BucketStream(o.bucket)))
	return err
}

// purge removes content that no name leads to any more. What it leaves goes when the
// bucket is opened next.
func (o *Objects) purge(ctx context.Context, subject string) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := o.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		o.log.Warn("the content of an object could not be removed", "bucket", o.bucket, "error", err)
	}
}

// info reads what the bucket has under a name.
func (o *Objects) info(ctx context.Context, name string) (*jetstream.ObjectInfo, error) {
	msg, err := o.last(ctx, o.label(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, o.absent(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	info := new(jetstream.ObjectInfo)
	if err := json.Unmarshal(msg.Data, info); err != nil || info.NUID == "" || info.Name != name {
		return nil, &ObjectError{o.bucket, name, "its description cannot be read"}
	}
	if info.Deleted {
		return nil, &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
	}
	return info, nil
}

func (o *Objects) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return o.stream.GetLastMsgForSubject(ctx, subject)
}

// absent distinguishes an object that is not there from one whose description the server
// cannot read: it answers that there is no message in both cases.
func (o *Objects) absent(ctx context.Context, name string) error {
	subjects, err := o.subjects(ctx, o.label(name))
	switch {
	case err != nil:
		return err
	case len(subjects) > 0:
		return &ObjectError{o.bucket, name, "its description cannot be read"}
	}
	return &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
}

// subjects counts the messages of all subjects that match.
func (o *Objects) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	info, err := o.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

func (o *Objects) get(ctx context.Context, name string) ([]byte, error) {
	for before := ""; ; {
		info, err := o.info(ctx, name)
		if err != nil {
			return nil, err
		}
		data, err := o.read(ctx, info)
		var damaged *ObjectError
		if !errors.As(err, &damaged) || info.NUID == before {
			return data, err
		}
		before = info.NUID // it may have been replaced meanwhile: then there is another one
	}
}

func (o *Objects) read(ctx context.Context, info *jetstream.ObjectInfo) ([]byte, error) {
	var data bytes.Buffer
	seq := uint64(0)
	for i := range info.Chunks {
		msg, err := o.next(ctx, seq+1, o.content(info.NUID))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, &ObjectError{o.bucket, info.Name, fmt.Sprintf("part %d of %d is missing", i+1, info.Chunks)}
		}
		if err != nil {
			return nil, err
		}
		seq = msg.Sequence
		data.Write(msg.Data)
	}
	if digest(data.Bytes()) != info.Digest {
		return nil, &ObjectError{o.bucket, info.Name, "its digest differs"}
	}
	return data.Bytes(), nil
}

func (o *Objects) next(ctx context.Context, seq uint64, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return o.stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
}

// remove takes the name away first, so that what a crash leaves is content without a
// name. The message that the NATS tools leave in place of a deleted object would
// stay.
func (o *Objects) remove(ctx context.Context, name string) error {
	info, err := o.info(ctx, name)
	var damaged *ObjectError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !errors.As(err, &damaged):
		return err
	}
	timed, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := o.stream.Purge(timed, jetstream.WithPurgeSubject(o.label(name))); err != nil {
		return err
	}
	if info != nil {
		o.purge(ctx, o.content(info.NUID))
	}
	return nil
}

func (o *Objects) names(ctx context.Context) ([]string, error) {
	subjects, err := o.subjects(ctx, bus.BucketSubjects(o.bucket)[1])
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(subjects))
	for subject := range subjects {
		coded := subject[strings.LastIndexByte(subject, '.')+1:]
		name, err := base64.URLEncoding.DecodeString(coded)
		if err != nil {
			return nil, &ObjectError{o.bucket, coded, "its name cannot be read"}
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names, nil
}

// sweep removes content without a name, and names that the NATS tools have marked as
// deleted. It reads names only when their number shows that there is something.
func (o *Objects) sweep(ctx context.Context, grace time.Duration) error {
	contents, err := o.subjects(ctx, bus.BucketSubjects(o.bucket)[0])
	if err != nil {
		return err
	}
	names, err := o.names(ctx)
	if err != nil || len(names) == len(contents) {
		return err
	}
	for _, name := range names {
		info, err := o.info(ctx, name)
		var damaged *ObjectError
		switch {
		case err == nil:
			delete(contents, o.content(info.NUID))
		case errors.Is(err, fs.ErrNotExist):
			o.purge(ctx, o.label(name))
		case errors.As(err, &damaged):
			o.log.Error("an object cannot be read", "bucket", o.bucket, "error", err)
		default:
			return err
		}
	}
	for subject := range contents {
		if err := o.sweepContent(ctx, subject, grace); err != nil {
			return err
		}
	}
	return nil
}

func (o *Objects) sweepContent(ctx context.Context, subject string, grace time.Duration) error {
	msg, err := o.last(ctx, subject)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	if err == nil && grace > 0 && time.Since(msg.Time) < grace {
		return nil // another process may be about to finish it
	}
	o.log.Info("the content of an object that was never finished is removed", "bucket", o.bucket)
	o.purge(ctx, subject)
	return nil
}
