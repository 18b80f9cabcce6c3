package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/flowhost/flowhost/run"
)

// CommitVersion is the version of the encoding that [Commit] writes. A change of the
// encoding increments it, and [DecodeCommit] keeps reading all versions since 1.
const CommitVersion = 1

// commitMagic is the first byte of a stored commit; no JSON begins with it. The
// version follows.
const commitMagic = 0xf7

// checksum covers all bytes before it: CRC-32C, as in iSCSI (RFC 3720).
var checksum = crc32.MakeTable(crc32.Castagnoli)

const checksumSize = 4

// Commit collects the events that become durable together. The zero value is empty.
type Commit struct {
	enc   encoder
	count int
}

// Add appends all events or none. It fails when an event cannot be encoded.
func (c *Commit) Add(events ...run.Event) error {
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

// AddWithin is Add for a commit whose sealed form must not exceed limit bytes. It
// reports whether the events fit; otherwise it adds none.
func (c *Commit) AddWithin(limit int, events ...run.Event) (bool, error) {
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

// maxHead is the maximum size of the header before the events.
const maxHead = 2 + binary.MaxVarintLen64

func (c *Commit) begin() {
	if len(c.enc.out) == 0 {
		c.enc.out = append(c.enc.out, make([]byte, maxHead)...)
	}
}

// Len is the number of events.
func (c *Commit) Len() int { return c.count }

// Size is an upper bound of the size of the sealed form.
func (c *Commit) Size() int { return len(c.enc.out) + checksumSize }

// Seal returns the stored form of a commit that follows the given revision, 0 for the
// first. The revisions form a chain, so that readers detect a missing commit. The
// bytes are valid until the next call of Add or Reset. Seal may be called again.
func (c *Commit) Seal(after uint64) []byte {
	c.begin()
	head := binary.AppendUvarint([]byte{commitMagic, CommitVersion}, after)
	start := maxHead - len(head)
	copy(c.enc.out[start:], head)
	sealed := c.enc.out[start:]
	return binary.LittleEndian.AppendUint32(sealed, crc32.Checksum(sealed, checksum))
}

// CommitSum returns the checksum of a stored commit, 0 for one without. A journal that
// has lost its end assigns the same revisions to other commits; the checksum
// distinguishes them.
func CommitSum(stored []byte) uint32 {
	if len(stored) < checksumSize {
		return 0
	}
	return binary.LittleEndian.Uint32(stored[len(stored)-checksumSize:])
}

// Blobs are the blobs to which the events refer. They must be stored before the commit.
func (c *Commit) Blobs() []run.Blob { return c.enc.blobs }

// Reset empties the commit and keeps its memory for the next events.
func (c *Commit) Reset() {
	c.enc.reset()
	c.count = 0
}

// StoredCommit is a decoded commit.
type StoredCommit struct {
	After  uint64 // the revision that it follows; 0 for the first commit
	Events []run.Event
}

// DecodeCommit decodes a stored commit. The result does not share memory with the
// stored bytes.
func DecodeCommit(stored []byte) (*StoredCommit, error) {
	if len(stored) < 2 || stored[0] != commitMagic {
		return nil, fmt.Errorf("the commit is %w: it does not begin like a commit", run.ErrDamaged)
	}
	if version := stored[1]; version < 1 || version > CommitVersion {
		return nil, fmt.Errorf("the commit has format version %d, and this flowhost reads versions up to %d: a newer flowhost is needed", version, CommitVersion)
	}
	body, err := verify(stored)
	if err != nil {
		return nil, fmt.Errorf("the commit is %w", err)
	}
	d := decoder{in: body, pos: 2}
	c := &StoredCommit{After: d.uint()}
	for d.more() {
		c.Events = append(c.Events, d.event())
	}
	if d.err != nil {
		return nil, fmt.Errorf("event %d of the commit is %w: %w", max(len(c.Events)-1, 0), run.ErrDamaged, d.err)
	}
	return c, nil
}

// verify checks the checksum at the end and removes it.
func verify(stored []byte) ([]byte, error) {
	if len(stored) < checksumSize {
		return nil, fmt.Errorf("%w: it has only %d bytes", run.ErrDamaged, len(stored))
	}
	body := stored[:len(stored)-checksumSize]
	if want, got := binary.LittleEndian.Uint32(stored[len(body):]), crc32.Checksum(body, checksum); want != got {
		return nil, fmt.Errorf("%w: its checksum is %08x, want %08x", run.ErrDamaged, got, want)
	}
	return body, nil
}
