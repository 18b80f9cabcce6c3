package feed

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"

	"github.com/flowhost/flowhost/bus/internal/varint"
)

// cursorVersion is of the form of cursors; others are refused.
const cursorVersion = 1

// wholeCommit is the index behind all events of a commit.
const wholeCommit = math.MaxInt32

// cursor is how far a follower has come with the events of a shard.
type cursor struct {
	shard    int
	revision uint64 // of the last commit of which it knows something
	index    int    // of the last event there that it knows, -1 for none, or wholeCommit
	sum      uint32 // of that commit; 0 when it is not known
	ends     *endsCursor
}

// endsCursor is how far a follower has come with the ends of runs in the history,
// after a place that the journal does not hold any more.
type endsCursor struct {
	until uint64 // the last revision whose ends come from the history
	seq   uint64 // in the stream, to be read next
}

var errCursor = errors.New("it is no cursor of an answer")

// encode gives the text of a cursor, which no one but parseCursor reads.
func (c cursor) encode() string {
	b := []byte{cursorVersion}
	b = binary.AppendUvarint(b, uint64(c.shard))
	b = binary.AppendUvarint(b, c.revision)
	b = binary.AppendVarint(b, int64(c.index))
	b = binary.AppendUvarint(b, uint64(c.sum))
	if c.ends != nil {
		b = binary.AppendUvarint(b, c.ends.until)
		b = binary.AppendUvarint(b, c.ends.seq)
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor reads the text of a cursor, whoever made it up.
func parseCursor(text string) (c cursor, err error) {
	if len(text) > 128 {
		return c, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 5 || b[0] != cursorVersion {
		return c, errCursor
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != crc32.ChecksumIEEE(body) {
		return c, errCursor
	}
	r := varint.Reader{Rest: body[1:]}
	shard, revision, index, sum := r.Number(), r.Number(), r.Signed(), r.Number()
	if shard > math.MaxInt32 || index < -1 || index > wholeCommit || sum > math.MaxUint32 {
		return c, errCursor
	}
	c = cursor{shard: int(shard), revision: revision, index: int(index), sum: uint32(sum)}
	if len(r.Rest) > 0 {
		c.ends = &endsCursor{until: r.Number(), seq: r.Number()}
	}
	if r.Broken || len(r.Rest) > 0 || c.ends != nil && (c.ends.until < c.revision || c.ends.seq == 0) {
		return cursor{}, errCursor
	}
	return c, nil
}
