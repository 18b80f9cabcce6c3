package bus

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"
)

// DisableJetStream does what a NATS server does by itself when it may not write its
// files: it stops storing messages and goes on otherwise.
func (s *Server) DisableJetStream() error { return s.current().ShutdownJetStream() }

// MendStreams is what StartServer does with the files of streams.
var MendStreams = mendStreams

// CutBlock cuts what cannot be read out of the content of a first file of the stream
// FH_JOURNAL, and fails when something is left that cannot be read.
func CutBlock(text []byte) ([]byte, error) {
	b, err := newBlock(&mendedStreams[0], "1.blk")
	if err != nil {
		return nil, err
	}
	at := 0
	c := b.read(text)
	for _, p := range c.holes {
		if p.from < at || p.to <= p.from || p.to > len(text) {
			return nil, fmt.Errorf("part %v of %d bytes follows %d", p, len(text), at)
		}
		at = p.to
	}
	out := without(text, c.holes)
	if again := b.read(out); len(again.holes) > 0 {
		return nil, fmt.Errorf("parts %v are left", again.holes)
	}
	return out, nil
}

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
