package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// CommitVersion is the version of the encoding that [Commit] writes. Commits of
// all versions from 1 on can be read.
const CommitVersion = 5

// ErrFenced is what a journal answers to an append whose expected revision is
// not its last one: somebody else writes this journal. Nothing was recorded.
var ErrFenced = errors.New("another writer has appended to the journal")

// ErrDamaged is wrapped by errors about stored bytes that are not what was
// written.
var ErrDamaged = errors.New("damaged")

// Stored commits of version 2 and later begin with this byte, which no JSON, and
// so no commit of version 1, can begin with. The version follows.
const commitMagic = 0xf7

// checksum covers all bytes before it: CRC-32C, as in iSCSI (RFC 3720).
var checksum = crc32.MakeTable(crc32.Castagnoli)

const checksumSize = 4

// Commit collects the events that become durable together. The zero value is
// empty. It may be used again after Reset.
type Commit struct {
	enc   encoder
	count int
}

// Add appends events, all or none. It fails when an event has no stored form.
func (c *Commit) Add(events ...Event) error {
	c.begin()
	before, count := c.enc.mark(), c.count
	for _, e := range events {
		c.enc.event(e)
		if c.enc.err != nil {
			err := fmt.Errorf("event %s of run %s: %w", e.Data.Kind(), e.Run, c.enc.err)
			c.enc.undo(before)
			c.count = count
			return err
		}
		c.count++
	}
	return nil
}

// AddWithin is Add for a commit that must not grow over limit bytes, as Seal
// gives them. It reports whether the events fit; none are added otherwise.
func (c *Commit) AddWithin(limit int, events ...Event) (bool, error) {
	c.begin()
	before, count := c.enc.mark(), c.count
	if err := c.Add(events...); err != nil {
		return false, err
	}
	if c.Size() <= limit {
		return true, nil
	}
	c.enc.undo(before)
	c.count = count
	return false, nil
}

// maxHead is the most that comes before the events.
const maxHead = 2 + binary.MaxVarintLen64

func (c *Commit) begin() {
	if len(c.enc.out) == 0 {
		c.enc.out = append(c.enc.out, make([]byte, maxHead)...)
	}
}

// Len is the number of events.
func (c *Commit) Len() int { return c.count }

// Size is the most bytes that Seal gives.
func (c *Commit) Size() int { return len(c.enc.out) + checksumSize }

// Seal gives the stored form of a commit that follows the given revision, 0 for
// the first: a chain in which a missing link shows. The bytes are valid until
// the next call of Add or Reset, and sealing again gives them again.
func (c *Commit) Seal(after uint64) []byte {
	c.begin()
	head := binary.AppendUvarint([]byte{commitMagic, CommitVersion}, after)
	start := maxHead - len(head)
	copy(c.enc.out[start:], head)
	sealed := c.enc.out[start:]
	return binary.LittleEndian.AppendUint32(sealed, crc32.Checksum(sealed, checksum))
}

// CommitSum gives the checksum of a stored commit. A journal that has lost its end
// gives the same revisions again to other commits: by it they can be told apart.
func CommitSum(stored []byte) uint32 {
	if len(stored) < checksumSize || stored[0] != commitMagic {
		return crc32.Checksum(stored, checksum) // version 1 has none
	}
	return binary.LittleEndian.Uint32(stored[len(stored)-checksumSize:])
}

// Blobs are what must be stored before the commit: its events refer to them.
func (c *Commit) Blobs() []Blob { return c.enc.blobs }

// Reset empties the commit and keeps its memory for the next one.
func (c *Commit) Reset() {
	c.enc.reset()
	c.count = 0
}

// StoredCommit is a commit as it was read.
type StoredCommit struct {
	Version int
	After   uint64 // the revision that it follows; [UnknownRevision] in version 1
	Events  []Event
}

// UnknownRevision stands for the revision before a commit that does not name it.
const UnknownRevision = math.MaxUint64

// DecodeCommit reads a stored commit of any version so far. The result does not
// share memory with the stored bytes.
func DecodeCommit(stored []byte) (*StoredCommit, error) {
	if len(stored) < 2 || stored[0] != commitMagic {
		return decodeCommit1(stored)
	}
	if version := stored[1]; version < 2 || version > CommitVersion {
		return nil, versionError(int(version))
	}
	body, err := verify(stored)
	if err != nil {
		return nil, fmt.Errorf("the commit is %w", err)
	}
	d := decoder{in: body, pos: 2}
	c := &StoredCommit{Version: int(stored[1]), After: d.uint()}
	for d.more() {
		c.Events = append(c.Events, d.event())
	}
	if d.err != nil {
		return nil, fmt.Errorf("event %d of the commit is %w: %w", max(len(c.Events)-1, 0), ErrDamaged, d.err)
	}
	return c, nil
}

func versionError(version int) error {
	return fmt.Errorf("the commit has format version %d and this flowhost reads up to version %d: a newer flowhost is needed", version, CommitVersion)
}

// verify checks the sum at the end and takes it off.
func verify(stored []byte) ([]byte, error) {
	if len(stored) < checksumSize {
		return nil, fmt.Errorf("%w: it has %d bytes only", ErrDamaged, len(stored))
	}
	body := stored[:len(stored)-checksumSize]
	if want, got := binary.LittleEndian.Uint32(stored[len(body):]), crc32.Checksum(body, checksum); want != got {
		return nil, fmt.Errorf("%w: its checksum is %08x and should be %08x", ErrDamaged, got, want)
	}
	return body, nil
}
