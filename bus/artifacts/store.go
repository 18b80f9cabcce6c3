package artifacts

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

// Defaults and bounds of artifacts.
const (
	DefaultQuota = 10 << 30       // bytes of a store
	DefaultMax   = 1 << 30        // bytes of one artifact
	Grace        = 24 * time.Hour // how long an artifact is kept after the last reference to it

	// touchAfter is how old the note of a reference may be: a sweep does not write one for
	// each artifact each time.
	touchAfter = time.Hour
)

// Errors of stores.
var (
	ErrNotFound = errors.New("there is no such artifact")
	ErrFull     = errors.New("the store of artifacts is full: raise its quota, or purge runs whose artifacts are not needed")
	ErrDamaged  = errors.New("parts of the artifact are missing or changed")
)

// Store is where artifacts are. Digests have the form of [Digest]. Implementations are safe
// for concurrent use; a Writer and a Reader are not.
type Store interface {
	// Begin starts an artifact.
	Begin(ctx context.Context) (Writer, error)

	// Open fails with ErrNotFound. The caller closes the reader.
	Open(ctx context.Context, digest string) (Reader, error)

	// Retain keeps artifacts for the next Grace, referenced or not. Those that do not exist
	// are ErrNotFound.
	Retain(ctx context.Context, digests []string, now time.Time) error

	// Sweep removes what no run refers to and was not retained within Grace, and what was
	// left by writers that crashed. An artifact about which referenced fails is kept; the
	// first such error is returned when the others have been looked at.
	Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) (Swept, error)
}

// Swept is what a sweep has removed of artifacts.
type Swept struct {
	Artifacts int
	Bytes     int64
}

func (s *Swept) add(size int64) {
	s.Artifacts++
	s.Bytes += size
}

// Info describes an artifact.
type Info struct {
	Size        int64
	ContentType string // "" when it is not known
}

// Writer writes one artifact. After an error only Discard is of use.
type Writer interface {
	// Write appends. It keeps nothing of p. A full store is ErrFull.
	Write(ctx context.Context, p []byte) error

	// Commit stores what was written under its digest, durably, and ends the writer.
	Commit(ctx context.Context, digest string, info Info, now time.Time) error

	// Discard removes what was written and ends the writer. After Commit it does nothing.
	Discard(ctx context.Context)
}

// Reader reads one artifact.
type Reader interface {
	Info() Info

	// ReadAt fills p from an offset, except at the end of the artifact.
	ReadAt(ctx context.Context, p []byte, offset int64) (int, error)

	Close() error
}

// prefix begins a digest.
const prefix = "sha256:"

// Digest is the name of an artifact with this SHA-256.
func Digest(sum []byte) string { return prefix + hex.EncodeToString(sum) }

// name is the part of a digest that is the name of a file or object, "" for a text that is
// no digest.
func name(digest string) string {
	digits, ok := strings.CutPrefix(digest, prefix)
	if !ok || !isName(digits) {
		return ""
	}
	return digits
}

func isName(digits string) bool {
	if len(digits) != 64 {
		return false
	}
	for _, c := range []byte(digits) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// decision is what a sweep does with an artifact.
type decision int

const (
	keep decision = iota
	touch
	remove
)

// decide asks about an artifact that was last retained at a time.
func decide(digest string, retained, now time.Time, referenced func(string) (bool, error)) (decision, error) {
	used, err := referenced(digest)
	switch age := now.Sub(retained); {
	case err != nil:
		return keep, err
	case used && age > touchAfter:
		return touch, nil
	case !used && age > Grace+touchAfter:
		return remove, nil
	}
	return keep, nil
}
