package artifacts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// partBytes is the size of an object's messages where the server takes them.
const partBytes = 256 << 10

// Begin implements [Store].
func (o *Objects) Begin(context.Context) (Writer, error) {
	return &objectWriter{objects: o, id: rand.Text(), part: min(partBytes, int(o.nc.MaxPayload())-jskit.Overhead)}, nil
}

// objectWriter collects a part and publishes it.
type objectWriter struct {
	objects *Objects
	id      string // names the parts
	part    int    // bytes of each, but the last
	buffer  []byte
	parts   uint32
	ended   bool
}

func (w *objectWriter) Write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		if w.buffer == nil {
			w.buffer = make([]byte, 0, w.part)
		}
		n := min(len(p), w.part-len(w.buffer))
		w.buffer = append(w.buffer, p[:n]...)
		p = p[n:]
		if len(w.buffer) == w.part {
			if err := w.send(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *objectWriter) send(ctx context.Context) error {
	if err := w.objects.publish(ctx, &nats.Msg{Subject: content(w.id), Data: w.buffer}); err != nil {
		return err
	}
	w.parts++
	w.buffer = w.buffer[:0]
	return nil
}

func (w *objectWriter) Commit(ctx context.Context, digest string, info Info, _ time.Time) error {
	n := name(digest)
	if n == "" {
		return fmt.Errorf("%q is no digest", digest)
	}
	if len(w.buffer) > 0 || w.parts == 0 { // an empty artifact has one empty part
		if err := w.send(ctx); err != nil {
			return err
		}
	}
	if err := w.complete(ctx); err != nil {
		return err
	}
	sum, err := hex.DecodeString(n)
	if err != nil {
		return err
	}
	description := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: n, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(w.part)}},
		Bucket:     Bucket, NUID: w.id, Size: uint64(info.Size), Chunks: w.parts,
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(sum), // as the NATS tools write it
	}
	if info.ContentType != "" {
		description.Metadata = map[string]string{contentType: info.ContentType}
	}
	stored, err := w.objects.adopt(ctx, &description)
	if err != nil || stored {
		w.ended = true // after an error the parts may be the artifact's: a sweep knows
		return err
	}
	w.Discard(ctx) // the same artifact is there already
	return nil
}

// complete fails when parts are missing: a sweep may have taken them for leftovers.
func (w *objectWriter) complete(ctx context.Context) error {
	whole, err := w.objects.whole(ctx, w.id, w.parts)
	if err == nil && !whole {
		return fmt.Errorf("nothing was written for too long: %w", ErrDamaged)
	}
	return err
}

// whole reports whether the bucket has all parts of an object.
func (o *Objects) whole(ctx context.Context, id string, parts uint32) (bool, error) {
	subjects, err := o.subjects(ctx, content(id))
	return subjects[content(id)] == uint64(parts), err
}

// intact reports whether the bucket has all bytes of an object, and no others.
func (o *Objects) intact(ctx context.Context, found *object) (bool, error) {
	whole, err := o.whole(ctx, found.NUID, found.Chunks)
	if err != nil || !whole {
		return false, err
	}
	r, err := check(o.reader(found), nil, prefix+found.Name)
	if err == nil {
		err = r.compare(ctx)
	}
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// adopt describes parts as an artifact, also in place of one that is damaged. It reports
// false when the artifact is there already, and retains it.
func (o *Objects) adopt(ctx context.Context, description *jetstream.ObjectInfo) (bool, error) {
	for range maxContention {
		found, err := o.find(ctx, description.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			if done, err := o.describe(ctx, description, found.sequence); done || err != nil {
				return done, err
			}
			continue
		case err != nil:
			return false, err
		}
		intact, err := o.intact(ctx, found)
		if err != nil {
			return false, err
		}
		next := description
		if intact {
			next = &found.ObjectInfo
		}
		if done, err := o.describe(ctx, next, found.sequence); done || err != nil {
			return !intact && err == nil, err
		}
	}
	return false, errContention
}

func (w *objectWriter) Discard(ctx context.Context) {
	if w.ended {
		return
	}
	w.ended = true
	if w.parts > 0 {
		w.objects.purge(ctx, content(w.id))
	}
}
