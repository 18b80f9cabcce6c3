package feed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"
)

// Cursor is one behind a whole commit.
func Cursor(shard int, revision uint64) string {
	return cursor{shard: shard, revision: revision, index: wholeCommit}.encode()
}

// EndsCursor is one that reads the history.
func EndsCursor(shard int, revision, until, seq uint64) string {
	return cursor{shard: shard, revision: revision, index: -1, ends: &endsCursor{until: until, seq: seq}}.encode()
}

// Sealed gives any bytes the form of a cursor.
func Sealed(body []byte) string {
	b := append([]byte{cursorVersion}, body...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// CheckCursor fails when a cursor that is understood has another text.
func CheckCursor(t testing.TB, text string) {
	for _, text := range []string{text, Sealed([]byte(text))} {
		c, err := parseCursor(text)
		if err != nil {
			continue
		}
		if again, err := parseCursor(c.encode()); err != nil || again.revision != c.revision || again.index != c.index || again.sum != c.sum {
			t.Errorf("%q is %+v, and that is %+v, %v", text, c, again, err)
		}
	}
}

// FeedBusy is how long followers have kept a feed busy.
func FeedBusy(f *Feed) time.Duration { return f.busy }
