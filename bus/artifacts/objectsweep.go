package artifacts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
)

// Sweep implements [Store].
func (o *Objects) Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) (swept Swept, err error) {
	names, err := o.names(ctx)
	if err != nil {
		return swept, fmt.Errorf("bucket %s: %w", Bucket, err)
	}
	var unknown error
	for _, n := range names {
		found, err := o.find(ctx, n)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		what := keep
		if err == nil {
			what, err = decide(prefix+n, found.retained, now, referenced)
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return swept, fmt.Errorf("bucket %s: %w", Bucket, cause)
			}
			if unknown == nil {
				unknown = fmt.Errorf("artifact %s is kept: %w", prefix+n, err)
			}
		}
		removed, err := o.carryOut(ctx, what, found)
		if err != nil {
			return swept, fmt.Errorf("bucket %s: %w", Bucket, err)
		}
		if removed {
			swept.add(int64(found.Size))
		}
	}
	return swept, errors.Join(o.sweepLeftovers(ctx), unknown)
}

// carryOut does what a sweep has decided, unless the artifact was retained meanwhile. It
// reports whether the artifact is removed.
func (o *Objects) carryOut(ctx context.Context, what decision, found *object) (bool, error) {
	switch what {
	case touch:
		_, err := o.refresh(ctx, found)
		return false, err
	case remove:
		// Whoever stores it again meanwhile expects this message, and writes new parts.
		done, err := o.describe(ctx, &jetstream.ObjectInfo{
			ObjectMeta: jetstream.ObjectMeta{Name: found.Name}, Bucket: Bucket, Deleted: true,
		}, found.sequence)
		if !done || err != nil {
			return false, err
		}
		o.cfg.Log.Info("an artifact is removed that no run refers to", "digest", prefix+found.Name, "bytes", found.Size)
		o.purge(ctx, content(found.NUID))
		return true, nil
	}
	return false, nil
}

// subjects counts the messages of the subjects that match.
func (o *Objects) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	ctx, cancel := o.timed(ctx)
	defer cancel()
	info, err := o.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// names are those of all objects that were ever described and are not forgotten.
func (o *Objects) names(ctx context.Context) ([]string, error) {
	subjects, err := o.subjects(ctx, bus.BucketSubjects(Bucket)[1])
	if err != nil {
		return nil, err
	}
	var names []string
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		n, err := base64.URLEncoding.DecodeString(subject[strings.LastIndexByte(subject, '.')+1:])
		if err == nil && isName(string(n)) {
			names = append(names, string(n))
		}
	}
	return names, nil
}

// sweepLeftovers removes parts that no description leads to and that nobody continues. The
// parts are listed first: what is described later is described then.
func (o *Objects) sweepLeftovers(ctx context.Context) error {
	parts, err := o.subjects(ctx, bus.BucketSubjects(Bucket)[0])
	if err != nil {
		return err
	}
	names, err := o.names(ctx)
	if err != nil {
		return err
	}
	for _, n := range names {
		found, err := o.find(ctx, n)
		switch {
		case errors.Is(err, ErrNotFound):
			if err := o.forget(ctx, n); err != nil {
				return err
			}
		case errors.Is(err, ErrDamaged):
			o.cfg.Log.Error("an artifact cannot be read", "bucket", Bucket, "error", err)
		case err != nil:
			return err
		default:
			delete(parts, content(found.NUID))
		}
	}
	for subject := range parts {
		if err := o.sweepParts(ctx, subject); err != nil {
			return err
		}
	}
	return nil
}

// sweepParts removes the parts of one object that was never described, when they are old.
func (o *Objects) sweepParts(ctx context.Context, subject string) error {
	timed, cancel := o.timed(ctx)
	defer cancel()
	msg, err := o.stream.GetLastMsgForSubject(timed, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return err
	case time.Since(msg.Time) < o.cfg.Leftover:
		return nil
	}
	o.cfg.Log.Info("an artifact that was never finished is removed", "bucket", Bucket)
	o.purge(ctx, subject)
	return nil
}

// forget removes the message that says that an object was deleted, once it is old: a purge
// names no revision, and somebody may be storing the same artifact again.
func (o *Objects) forget(ctx context.Context, name string) error {
	timed, cancel := o.timed(ctx)
	defer cancel()
	msg, err := o.stream.GetLastMsgForSubject(timed, label(name))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return err
	case time.Since(msg.Time) < Grace:
		return nil
	}
	err = o.stream.DeleteMsg(timed, msg.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
