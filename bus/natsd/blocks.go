package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"time"

	"github.com/minio/highwayhash"
)

// A record of a file of messages is, in little endian:
//
//	length 4 | sequence 8 | time 8 | length of subject 2 | subject | [length of headers 4 | headers] | body | hash 8
//
// The hash leaves the lengths out. A record without a subject marks a sequence as
// erased, or is a tombstone of one elsewhere.
//
// Source: nats-server v2.15.2, server/filestore.go, writeMsgRecordLocked.
const (
	recordHead    = 22
	recordHash    = 8
	recordMark    = recordHead + recordHash // size of a record without a subject
	recordHeaders = 1 << 31                 // bit of the length: there are headers
	recordErased  = 1 << 63                 // bit of the sequence
	recordTomb    = 1 << 62                 // bit of the sequence
	recordMax     = 32 << 20

	// searchBudget is how many times the size of a file may be hashed in search of
	// records behind a damaged one: bodies may hold what looks like records.
	searchBudget = 16
)

// block reads the records of one file of a stream.
type block struct {
	hash     hash.Hash64
	sum      [recordHash]byte
	hashed   int      // bytes, so far
	prefixes []string // with which the stream's subjects begin
	dense    bool     // each sequence has a record
}

// newBlock is for the file with the given name, "7.blk", of a stream: the key of its
// hashes is made of both.
func newBlock(stream *mendedStream, name string) (*block, error) {
	var index uint32
	if _, err := fmt.Sscanf(filepath.Base(name), "%d.blk", &index); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream.name, index))
	digest, err := highwayhash.New64(key[:])
	return &block{hash: digest, prefixes: stream.prefixes, dense: stream.dense}, err
}

// record is a message, or a mark, in a file.
type record struct {
	at, size int
	seq      uint64 // with its bits
	written  time.Time
}

// message reports whether the record takes a sequence, and which.
func (r record) message() (seq uint64, ok bool) {
	return r.seq &^ recordErased, r.seq&recordTomb == 0 && r.seq&^recordErased > 0
}

// record reads the record at a place.
func (b *block) record(text []byte, at int) (r record, ok bool) {
	text = text[at:]
	if len(text) < recordMark {
		return r, false
	}
	length := binary.LittleEndian.Uint32(text)
	size := int(length &^ recordHeaders)
	subject := recordHead + int(binary.LittleEndian.Uint16(text[20:]))
	body := subject
	if length&recordHeaders != 0 {
		body += 4
	}
	if size > recordMax || size > len(text) || body > size-recordHash || !b.plausible(text[:size], subject, body) {
		return r, false
	}
	b.hashed += size
	b.hash.Reset()
	b.hash.Write(text[4:20])
	b.hash.Write(text[recordHead:subject])
	b.hash.Write(text[body : size-recordHash])
	r = record{at, size, binary.LittleEndian.Uint64(text[4:]), time.Unix(0, int64(binary.LittleEndian.Uint64(text[12:])))}
	return r, bytes.Equal(b.hash.Sum(b.sum[:0]), text[size-recordHash:size])
}

// plausible looks at what the hash leaves out: where the subject ends, and where the
// headers do.
func (b *block) plausible(text []byte, subject, body int) bool {
	if subject == recordHead { // what was erased keeps its size
		seq := binary.LittleEndian.Uint64(text[4:])
		return seq&recordErased != 0 || len(text) == recordMark && (seq&recordTomb != 0 || seq == 0)
	}
	name := text[recordHead:subject]
	known := slices.ContainsFunc(b.prefixes, func(prefix string) bool { return bytes.HasPrefix(name, []byte(prefix)) })
	if !known || bytes.ContainsAny(name, " \t\r\n{}[]\",:") {
		return false
	}
	if body == subject {
		return true
	}
	headers, size := text[body:len(text)-recordHash], int(binary.LittleEndian.Uint32(text[subject:]))
	return size == 0 || size == bytes.Index(headers, []byte("\r\n\r\n"))+4
}

// span is a part of a file.
type span struct{ from, to int }

// content is what can be read of a file.
type content struct {
	first, last uint64    // sequences of its messages; 0 when it has none
	newest      time.Time // when the last record was written
	holes       []hole    // in order
	size        int
}

// hole is a part of a file that cannot be read.
type hole struct {
	span
	before, after uint64    // sequences of the messages around it, 0 for none in the file
	written       time.Time // of the record behind it
	torn          bool      // it looks like the last write, cut short
}

// tail reports whether nothing can be read behind the hole.
func (c *content) tail(h hole) bool { return h.to == c.size }

func (c *content) startsWithHole() bool { return len(c.holes) > 0 && c.holes[0].from == 0 }

// read reads a file.
func (b *block) read(text []byte) content {
	c := content{size: len(text)}
	at := 0
	for at < len(text) {
		r, ok := b.record(text, at)
		if !ok {
			break
		}
		c.add(r)
		at += r.size
	}
	if at < len(text) {
		b.readOn(text, at, &c)
	}
	return c
}

func (c *content) add(r record) {
	c.newest = r.written
	if seq, ok := r.message(); ok {
		if c.first == 0 {
			c.first = seq
		}
	}
	c.last = max(c.last, r.seq&^(recordErased|recordTomb))
}

// readOn reads a file from its first damage on.
func (b *block) readOn(text []byte, damage int, c *content) {
	records := inOrder(b.search(text, damage, c.last))
	at := damage
	for _, r := range records {
		seq, ok := r.message()
		if r.at > at {
			c.holes = append(c.holes, hole{span: span{at, r.at}, before: c.last, written: r.written})
		}
		for i := range c.holes {
			if ok && c.holes[i].after == 0 {
				c.holes[i].after = seq
			}
		}
		c.add(r)
		at = r.at + r.size
	}
	if at < len(text) {
		c.holes = append(c.holes, hole{span: span{at, len(text)}, before: c.last, torn: torn(text[at:])})
	}
}

// torn reports whether the end of a file is what a crash leaves of a write: a part of a
// record, or space without content.
func torn(end []byte) bool {
	if len(end) < recordMark || len(bytes.Trim(end, "\x00")) == 0 {
		return true
	}
	return int(binary.LittleEndian.Uint32(end)&^recordHeaders) > len(end)
}

// search finds the records behind a damaged one that follows on a sequence.
func (b *block) search(text []byte, from int, last uint64) (records []record) {
	most, good := b.hashed+searchBudget*len(text), from
	for at := from; at+recordMark <= len(text) && b.hashed < most; {
		r, ok := b.record(text, at)
		seq, isMessage := r.message()
		lost := uint64(at-good) / recordMark
		if !ok || isMessage && (seq <= last || b.dense && last > 0 && lost > 0 && seq-last > lost+1) {
			at++
			continue
		}
		records = append(records, r)
		if isMessage {
			last = seq
		}
		at += r.size
		good = at
	}
	return records
}

// inOrder leaves out messages that are above later ones: they were found in the body
// of a damaged one, and are no records of the server's.
func inOrder(records []record) []record {
	lowest := ^uint64(0)
	kept := records[len(records):]
	for _, r := range slices.Backward(records) {
		seq, ok := r.message()
		if ok && seq >= lowest {
			continue
		}
		if ok {
			lowest = seq
		}
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	return kept
}

// without gives a text without some parts of it.
func without(text []byte, parts []hole) []byte {
	var out []byte
	at := 0
	for _, p := range parts {
		out = append(out, text[at:p.from]...)
		at = p.to
	}
	return append(out, text[at:]...)
}
