package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// diary is what happened outside, for whoever has to find out why.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (d *diary) String() string { return strings.Join(d.lines, "\n") }

// fuse ends a process at one of its deeds outside: an append, a put, a notice.
// That last deed is done or not; nothing is done after it.
type fuse struct {
	left  atomic.Int64
	done  bool // whether the last deed is done
	kill  context.CancelFunc
	moody func() bool // whether a deed fails for once; nil for never
}

// fails reports whether a deed fails, for once.
func (f *fuse) fails() bool { return f.moody != nil && f.moody() }

// newFuse blows at the n-th deed, or never for 0.
func newFuse(n int, done bool, kill context.CancelFunc) *fuse {
	f := &fuse{done: done, kill: kill}
	f.left.Store(int64(n))
	if n == 0 {
		f.left.Store(1 << 62)
	}
	return f
}

var (
	errDead  = errors.New("the process has ended")
	errMoody = errors.New("not now")
)

// deed does something outside, unless the process is dead.
func deed[T any](f *fuse, do func() (T, error)) (T, error) {
	var none T
	switch left := f.left.Add(-1); {
	case left > 0:
		return do()
	case left == 0:
		if f.done {
			do()
		}
		f.kill()
	}
	return none, errDead
}

// moodyDeed is a deed that may fail, or of which the answer may be lost.
func moodyDeed[T any](f *fuse, do func() (T, error)) (T, error) {
	return deed(f, func() (T, error) {
		var none T
		if !f.fails() {
			return do()
		}
		if f.fails() {
			do()
		}
		return none, errMoody
	})
}

// noResult makes a deed of one that gives nothing but an error.
func noResult(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

// mortalJournal is a journal as one process has it.
type mortalJournal struct {
	Journal
	*fuse
}

func (j mortalJournal) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	return moodyDeed(j.fuse, func() (uint64, error) { return j.Journal.Append(ctx, after, commit) })
}

func (j mortalJournal) Compact(ctx context.Context, upTo uint64) error {
	_, err := moodyDeed(j.fuse, noResult(func() error { return j.Journal.Compact(ctx, upTo) }))
	return err
}

// mortalStore is a store as one process has it.
type mortalStore struct {
	Store
	*fuse
}

func (s mortalStore) Put(ctx context.Context, name string, data []byte) error {
	_, err := moodyDeed(s.fuse, noResult(func() error { return s.Store.Put(ctx, name, data) }))
	return err
}

func (s mortalStore) Get(ctx context.Context, name string) ([]byte, error) {
	if _, snapshot := snapshotRevision(name); !snapshot && s.fails() {
		return nil, errMoody
	}
	return s.Store.Get(ctx, name)
}

func (s mortalStore) Delete(ctx context.Context, name string) error {
	_, err := moodyDeed(s.fuse, noResult(func() error { return s.Store.Delete(ctx, name) }))
	return err
}

// mortalObserver is an observer as one process has it.
type mortalObserver struct {
	Observer
	*fuse
}

func (o mortalObserver) Committed(ctx context.Context, n run.Notice) error {
	_, err := deed(o.fuse, noResult(func() error { return o.Observer.Committed(ctx, n) }))
	return err
}

func (o mortalObserver) Flush(ctx context.Context) error {
	_, err := moodyDeed(o.fuse, noResult(func() error { return o.Observer.Flush(ctx) }))
	return err
}

// ledger is a journal that remembers everything, with the state at each revision.
type ledger struct {
	memory.Journal
	t     testing.TB
	diary *diary
	blobs *checkedBlobs

	mu     sync.Mutex
	shard  *run.Shard          // at the last revision
	events [][]run.Event       // by revision; large JSON is as in a decoded event
	states [][]byte            // by revision
	refs   []map[string]string // by revision: the blobs that its events refer to
}

func newLedger(t testing.TB, diary *diary, blobs *checkedBlobs) *ledger {
	l := &ledger{t: t, diary: diary, blobs: blobs, shard: run.NewShard()}
	l.events, l.states, l.refs = [][]run.Event{nil}, [][]byte{shardBytes(t, l.shard)}, []map[string]string{nil}
	return l
}

// shardBytes is a state as bytes, the same for the same state. Definitions are left
// out: which of them are still known is not part of it.
func shardBytes(t testing.TB, s *run.Shard) []byte {
	n, err := wire.NewSnapshot(&run.Shard{Watermarks: s.Watermarks, Keys: s.Keys, Successes: s.Successes})
	if err != nil {
		t.Error(err)
	}
	for _, id := range sortedKeys(s.Runs) {
		if err := n.Add(s.Runs[id]); err != nil {
			t.Error(err)
		}
	}
	return n.Seal(0)
}

func (l *ledger) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	revision, err := l.Journal.Append(ctx, after, commit)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision == uint64(len(l.events)) {
		l.enter(revision, commit)
	}
	return revision, nil
}

func (l *ledger) enter(revision uint64, stored []byte) {
	commit, err := wire.DecodeCommit(stored)
	if err != nil {
		l.t.Errorf("revision %d: %v", revision, err)
		return
	}
	if commit.After != revision-1 || len(commit.Events) == 0 {
		l.t.Errorf("revision %d says that it follows %d and holds %d events", revision, commit.After, len(commit.Events))
	}
	refs := map[string]string{}
	for i, e := range commit.Events {
		e.Payloads(func(p *json.RawMessage) {
			if name, apart := run.BlobName(*p); apart {
				refs[name] = e.Data.Kind()
				if !l.blobs.holds(name) {
					l.t.Errorf("revision %d refers to %s in event %d, and it is not stored", revision, name, i)
				}
			}
		})
		if err := apply(l.shard, e); err != nil {
			l.t.Errorf("revision %d, event %d: %v", revision, i, err)
		}
	}
	l.events, l.states, l.refs = append(l.events, commit.Events), append(l.states, shardBytes(l.t, l.shard)), append(l.refs, refs)
}

func apply(s *run.Shard, e run.Event) error {
	r, err := s.Apply(e)
	if r != nil && r.State.Done() {
		s.Forget(r.ID)
	}
	return err
}

func (l *ledger) Compact(ctx context.Context, upTo uint64) error {
	l.diary.note("the journal is removed up to revision %d", upTo)
	return l.Journal.Compact(ctx, upTo)
}

// at gives the events of a revision.
func (l *ledger) at(revision uint64) []run.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision >= uint64(len(l.events)) {
		return nil
	}
	return l.events[revision]
}

func (l *ledger) stateAt(revision uint64) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision >= uint64(len(l.states)) {
		return nil
	}
	return l.states[revision]
}

func (l *ledger) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.events)) - 1
}

// open is the number of unfinished runs.
func (l *ledger) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.shard.Runs)
}

// needs reports what after the revision still refers to a blob.
func (l *ledger) needs(name string, after uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for revision := after + 1; revision < uint64(len(l.refs)); revision++ {
		if kind, ok := l.refs[revision][name]; ok {
			return fmt.Errorf("%s of revision %d refers to it", kind, revision)
		}
	}
	return nil
}

// shelf is a store of snapshots that checks each of them against the ledger.
type checkedSnapshots struct {
	memory.Store
	t      testing.TB
	diary  *diary
	ledger *ledger

	mu    sync.Mutex
	blobs map[string]map[string]bool // by snapshot: what it refers to
}

func (s *checkedSnapshots) Put(ctx context.Context, name string, data []byte) error {
	shard, revision, err := wire.DecodeSnapshot(data)
	if err != nil {
		s.t.Errorf("%s: %v", name, err)
		return err
	}
	if want := s.ledger.stateAt(revision); !bytes.Equal(shardBytes(s.t, shard), want) {
		s.t.Errorf("snapshot %d is not the state at its revision", revision)
	}
	refs := map[string]bool{}
	for _, r := range shard.Runs {
		if shard.Definitions[r.Definition] == nil {
			s.t.Errorf("snapshot %d lacks the definition of run %s", revision, r.ID)
		}
		r.Payloads(func(p *json.RawMessage) {
			if name, apart := run.BlobName(*p); apart {
				refs[name] = true
			}
		})
	}
	if err := s.Store.Put(ctx, name, data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs == nil {
		s.blobs = map[string]map[string]bool{}
	}
	s.blobs[name] = refs
	s.diary.note("snapshot %d of %d runs", revision, len(shard.Runs))
	return nil
}

func (s *checkedSnapshots) Delete(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, name)
	s.diary.note("%s is removed", name)
	return s.Store.Delete(ctx, name)
}

// damage turns a bit of the newest snapshot.
func (s *checkedSnapshots) damage(rng *rand.Rand) {
	names, _ := s.List(context.Background())
	if len(names) == 0 {
		return
	}
	name := names[len(names)-1]
	data, err := s.Get(context.Background(), name)
	if err != nil {
		s.t.Error(err)
		return
	}
	data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
	s.Store.Put(context.Background(), name, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, name)
	s.diary.note("%s is damaged", name)
}

// oldest is the revision of the oldest snapshot that is kept.
func (s *checkedSnapshots) oldest() uint64 {
	names, _ := s.List(context.Background())
	revisions := revisionsOf(names)
	if len(revisions) == 0 {
		return 0
	}
	return revisions[len(revisions)-1]
}

// needs reports which snapshot still refers to a blob.
func (s *checkedSnapshots) needs(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for snapshot, refs := range s.blobs {
		if refs[name] {
			return fmt.Errorf("%s refers to it", snapshot)
		}
	}
	return nil
}

// vault is a store of blobs that remembers everything, and that nothing is taken
// from while it is needed.
type checkedBlobs struct {
	memory.Store
	t     testing.TB
	diary *diary
	need  func(name string) error

	mu  sync.Mutex
	all map[string][]byte
}

func (v *checkedBlobs) Put(ctx context.Context, name string, data []byte) error {
	if !run.IsBlob(name, data) {
		v.t.Errorf("%d bytes are stored as %s", len(data), name)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[string][]byte{}
	}
	v.all[name] = bytes.Clone(data)
	v.diary.note("blob %s", name)
	return v.Store.Put(ctx, name, data)
}

func (v *checkedBlobs) Delete(ctx context.Context, name string) error {
	v.diary.note("blob %s is removed", name)
	if err := v.need(name); err != nil {
		v.t.Errorf("blob %s is removed: %v", name, err)
	}
	return v.Store.Delete(ctx, name)
}

func (v *checkedBlobs) holds(name string) bool {
	_, err := v.Get(context.Background(), name)
	return !errors.Is(err, fs.ErrNotExist)
}

// whole puts large JSON in place of the references to it, in a copy.
func (v *checkedBlobs) whole(data json.RawMessage) json.RawMessage {
	name, apart := run.BlobName(data)
	if !apart {
		return data
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all[name]
}
