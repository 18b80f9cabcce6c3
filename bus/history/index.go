package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flowhost/flowhost/run"
)

// errIndexDamaged reports that the index cannot be used any more and must be rebuilt
// from the stream.
var errIndexDamaged = errors.New("the index of the history is damaged")

// Buckets of the index, and keys of the bucket about.
var (
	bucketAbout = []byte("about")
	bucketRuns  = []byte("runs")  // lane, id → entry; each entry is in its flow's lane and in one over all flows
	bucketOrder = []byte("order") // lane of a flow, sequence → id

	keyVersion = []byte("version")
	keyCreated = []byte("created") // the stream's, UTC nanoseconds
	keyNext    = []byte("next")    // sequence that is to be indexed next
	keyNewest  = []byte("newest")  // the last entry's sequence, then its id
)

// indexVersion is of the format of the file; an index of another one is rebuilt.
const indexVersion = 3

// recordIndex finds records of stream FH_HISTORY without reading them, in a file.
// It follows the stream by sequence and can be rebuilt at any time. Its methods
// are safe for concurrent use, but one at a time may write.
type recordIndex struct {
	db *bbolt.DB
}

// indexPlace is which part of which stream the index has.
type indexPlace struct {
	created   time.Time // of the stream; zero in a new index
	next      uint64    // sequence that is to be indexed next
	newest    uint64    // sequence of the last entry, 0 when there was none
	newestRun run.ID
}

// openIndex opens the file, or makes it. errIndexDamaged means that it is to
// be removed.
func openIndex(path string) (*recordIndex, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("index of the history: %w", err)
	}
	x := &recordIndex{}
	err := protect(func() (err error) {
		x.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return err
		}
		return x.prepare(path)
	})
	if err == nil {
		return x, nil
	}
	if !passing(err) && !errors.Is(err, errIndexDamaged) {
		err = fmt.Errorf("%w: %w", errIndexDamaged, err)
	}
	return nil, fmt.Errorf("index of the history: %s: %w", path, err)
}

// passing reports whether an error comes from outside the file: a lock, the disk, a
// permission.
func passing(err error) bool {
	var errno syscall.Errno
	var path *fs.PathError
	return errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &path) || errors.As(err, &errno)
}

// prepare makes the buckets of a new file. An old one that was cut short passes
// every check of the library and breaks only when the missing part is touched.
func (x *recordIndex) prepare(path string) error {
	return x.update(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return errIndexDamaged
		}
		for _, name := range [][]byte{bucketRuns, bucketOrder, bucketArtifacts, bucketMentions} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		if tx.Bucket(bucketAbout) != nil {
			return nil
		}
		about, err := tx.CreateBucket(bucketAbout)
		if err != nil {
			return err
		}
		return about.Put(keyVersion, []byte{indexVersion})
	})
}

func (x *recordIndex) close() error { return x.db.Close() }

// protect turns the library's panics over pages that cannot be, and faults beyond
// the end of the file, into errors. The file is not to be used after one, nor to be
// closed: locks may never be released.
func protect(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errIndexDamaged, r)
		}
	}()
	return work()
}

func (x *recordIndex) view(read func(*bbolt.Tx) error) error {
	return protect(func() error { return x.db.View(read) })
}

func (x *recordIndex) update(write func(*bbolt.Tx) error) error {
	return protect(func() error {
		return x.db.Update(func(tx *bbolt.Tx) error {
			if err := checkFreeList(tx); err != nil {
				return err
			}
			return write(tx)
		})
	})
}

// checkFreeList checks the length of the list of free pages, which the library does not: with
// the commit it frees the pages of the list one by one, and a damaged length takes all memory.
func checkFreeList(tx *bbolt.Tx) error {
	const (
		metaFreeList = 48 // offsets in a meta page, which page 0 and 1 are in turns
		metaTx       = 64
		none         = math.MaxUint64
	)
	file, err := os.Open(tx.DB().Path())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	size := tx.DB().Info().PageSize
	pages := tx.Size() / int64(size)
	for meta := range 2 {
		var head [metaTx + 8]byte
		if _, err := file.ReadAt(head[:], int64(meta*size)); err != nil {
			return err
		}
		if binary.NativeEndian.Uint64(head[metaTx:]) != uint64(tx.ID()-1) {
			continue
		}
		list := binary.NativeEndian.Uint64(head[metaFreeList:])
		if list == none {
			return nil
		}
		if list >= uint64(pages) {
			return errIndexDamaged
		}
		page, err := tx.Page(int(list))
		if err != nil {
			return err
		}
		if page.Type != "freelist" || int64(page.OverflowCount) >= pages {
			return errIndexDamaged
		}
		return nil
	}
	return errIndexDamaged
}

// place gives how far the index has come.
func (x *recordIndex) place() (p indexPlace, err error) {
	err = x.view(func(tx *bbolt.Tx) error {
		about := tx.Bucket(bucketAbout)
		if v := about.Get(keyVersion); len(v) != 1 || v[0] != indexVersion {
			return errIndexDamaged
		}
		p.next = 1
		if v := about.Get(keyCreated); len(v) == 8 {
			p.created = time.Unix(0, int64(binary.BigEndian.Uint64(v))).UTC()
		}
		if v := about.Get(keyNext); len(v) == 8 {
			p.next = binary.BigEndian.Uint64(v)
		}
		if v := about.Get(keyNewest); len(v) > 8 {
			p.newest, p.newestRun = binary.BigEndian.Uint64(v), run.ID(v[8:])
		}
		return nil
	})
	return p, err
}

// belongsTo notes the stream of a new index.
func (x *recordIndex) belongsTo(created time.Time) error {
	return x.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAbout).Put(keyCreated, binary.BigEndian.AppendUint64(nil, uint64(created.UnixNano())))
	})
}

// add enters entries, in the order of the stream, and notes that next is to be
// indexed next. Of two entries of the same run the later one counts.
func (x *recordIndex) add(entries []indexEntry, next uint64) error {
	return x.update(func(tx *bbolt.Tx) error {
		about, runs, order := tx.Bucket(bucketAbout), tx.Bucket(bucketRuns), tx.Bucket(bucketOrder)
		runs.FillPercent, order.FillPercent = 0.9, 0.9 // lanes grow at their ends
		for i := range entries {
			e := &entries[i]
			value := e.encode()
			err := errors.Join(
				replace(runs, e),
				runs.Put(runKey(e.over(), e.State, e.Run), value),
				runs.Put(runKey(e.Flow, e.State, e.Run), value),
				order.Put(orderKey(e.Flow, e.State, e.seq), []byte(e.Run)),
				mention(tx, e))
			if err != nil {
				return fmt.Errorf("run %s: %w", e.Run, err)
			}
		}
		if len(entries) > 0 {
			newest := entries[len(entries)-1]
			if err := about.Put(keyNewest, append(binary.BigEndian.AppendUint64(nil, newest.seq), newest.Run...)); err != nil {
				return err
			}
		}
		return about.Put(keyNext, binary.BigEndian.AppendUint64(nil, next))
	})
}

// replace removes what is known of an earlier end of the run in another state.
func replace(runs *bbolt.Bucket, e *indexEntry) error {
	var err error
	for _, state := range finalStates {
		if key := runKey(e.over(), state, e.Run); state != e.State && runs.Get(key) != nil {
			err = errors.Join(err, runs.Delete(key), runs.Delete(runKey(e.Flow, state, e.Run)))
		}
	}
	return err
}

// find gives the entry of a run's record. Its sequence is 0 when there is none.
func (x *recordIndex) find(id run.ID) (e indexEntry, err error) {
	err = x.view(func(tx *bbolt.Tx) error {
		for _, state := range finalStates {
			for _, over := range []string{laneTop, laneChildren} {
				value := tx.Bucket(bucketRuns).Get(runKey(over, state, id))
				if value == nil {
					continue
				}
				e, err = decodeEntry(id, state, value)
				return err
			}
		}
		return nil
	})
	return e, err
}

// laneName names a flow's lane.
type laneName struct {
	flow  string
	state run.State
}

// lanes are those of flows that have entries.
func (x *recordIndex) lanes() (all []laneName, err error) {
	err = x.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketOrder).Cursor()
		for key, _ := c.First(); key != nil; {
			flow, state, ok := splitLane(key)
			if !ok {
				return errIndexDamaged
			}
			all = append(all, laneName{flow, state})
			key, _ = c.Seek(afterLane(lane(flow, state)))
		}
		return nil
	})
	return all, err
}

// afterLane is above all keys of a lane.
func afterLane(lane []byte) []byte {
	after := bytes.Clone(lane)
	after[len(after)-1]++
	return after
}

// drop removes up to limit entries of a lane whose sequences are below the given
// one. It returns how many it removed.
func (x *recordIndex) drop(l laneName, below uint64, limit int) (n int, err error) {
	err = x.update(func(tx *bbolt.Tx) error {
		runs, order := tx.Bucket(bucketRuns), tx.Bucket(bucketOrder)
		old, err := oldest(order, lane(l.flow, l.state), below, limit)
		n = len(old)
		for _, e := range old {
			err = errors.Join(err, order.Delete(orderKey(l.flow, l.state, e.seq)), forget(runs, l, e), unmention(tx, e.seq))
		}
		return err
	})
	return n, err
}

// oldest gives entries of a lane with sequences below the given one. Only sequence
// and run are set.
func oldest(order *bbolt.Bucket, lane []byte, below uint64, limit int) ([]indexEntry, error) {
	var old []indexEntry
	c := order.Cursor()
	for key, id := c.Seek(lane); bytes.HasPrefix(key, lane) && len(old) < limit; key, id = c.Next() {
		if len(key) != len(lane)+8 {
			return nil, errIndexDamaged
		}
		seq := binary.BigEndian.Uint64(key[len(lane):])
		if seq >= below {
			break
		}
		old = append(old, indexEntry{seq: seq, Summary: run.Summary{Run: run.ID(id)}})
	}
	return old, nil
}

// forget removes an entry, unless the run has a later one.
func forget(runs *bbolt.Bucket, l laneName, old indexEntry) error {
	key := runKey(l.flow, l.state, old.Run)
	value := runs.Get(key)
	if value == nil {
		return nil
	}
	e, err := decodeEntry(old.Run, l.state, value)
	if err != nil || e.seq != old.seq {
		return err
	}
	return errors.Join(runs.Delete(key), runs.Delete(runKey(e.over(), l.state, old.Run)))
}
