package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// blobs keeps JSON that is too large for the journal's events. It belongs to the
// committer while the loop runs, and to the recovery before.
//
// A blob may be removed when no snapshot refers to it and no commit that follows the
// older one of the two kept snapshots. A commit belongs to the generation of the
// snapshot that it follows.
type blobs struct {
	store     Store
	log       *slog.Logger
	withRetry func(ctx context.Context, complaint string, f func() error) error
	stored    map[string]int // the last generation whose commits refer to it
}

// sweep requests the removal of blobs to which only commits of earlier generations
// refer.
type sweep struct {
	generation int                 // that begins with the older of the two kept snapshots
	named      map[string]struct{} // referred to by the kept snapshots
}

// keep stores the blobs of a commit of the given generation that are not stored yet.
// It returns when all of them are durable.
func (b *blobs) keep(ctx context.Context, generation int, all []run.Blob) error {
	for _, blob := range all {
		if _, known := b.stored[blob.Name]; !known {
			err := b.withRetry(ctx, "a large value cannot be stored; trying again", func() error {
				return b.store.Put(ctx, blob.Name, blob.Data)
			})
			if err != nil {
				return err
			}
		}
		b.stored[blob.Name] = generation
	}
	return nil
}

// unreferenced lists the blobs to which nothing refers any more.
func (b *blobs) unreferenced(ctx context.Context, s sweep) []string {
	names, err := b.store.List(ctx)
	if err != nil {
		b.log.Warn("large values that are no longer needed cannot be listed", "error", err)
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, named := s.named[name]
		last, known := b.stored[name]
		if needed := named || known && last >= s.generation; needed {
			return true
		}
		delete(b.stored, name)
		return false
	})
}

// remove removes the listed blobs, except those that were stored again since. The next
// sweep finds again what it cannot remove now.
func (b *blobs) remove(ctx context.Context, names []string) {
	for _, name := range names {
		if _, again := b.stored[name]; again {
			continue
		}
		if err := b.store.Delete(ctx, name); err != nil {
			b.log.Warn("a large value that is no longer needed cannot be removed", "name", name, "error", err)
			return
		}
	}
}

// found notes a blob to which a commit or snapshot refers that is read at start.
func (b *blobs) found(p *json.RawMessage) {
	if name, apart := run.BlobName(*p); apart {
		b.stored[name] = firstGeneration
	}
}

// BlobError is returned for a large value that the journal refers to and that cannot
// be read.
type BlobError struct {
	Name string
	Err  error
}

func (e *BlobError) Error() string {
	return fmt.Sprintf("the journal refers to a large value, %s, that cannot be read: %v", e.Name, e.Err)
}

func (e *BlobError) Unwrap() error { return e.Err }

// lasting reports whether a retry cannot help.
func (e *BlobError) lasting() bool {
	return errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, run.ErrDamaged)
}

// fetch replaces a reference to JSON by the JSON.
func (b *blobs) fetch(ctx context.Context, p *json.RawMessage) error {
	name, apart := run.BlobName(*p)
	if !apart {
		return nil
	}
	data, err := b.store.Get(ctx, name)
	if err == nil && !run.IsBlob(name, data) {
		err = run.ErrDamaged
	}
	if err != nil {
		return &BlobError{Name: name, Err: err}
	}
	*p = data
	return nil
}
