package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/minio/highwayhash"
)

// A server that starts after a crash cuts a file of a stream at the first record
// that it cannot read, and the good ones behind it are gone without a word. Of the
// journal's files the unreadable part alone is therefore cut out before the server
// sees them, so that the loss is a gap of the sequences, which Journal.Replay
// reports, and no larger than it must be.
//
// A record is, in little endian:
//
//	length 4 | sequence 8 | time 8 | length of subject 2 | subject | [length of headers 4 | headers] | body | hash 8
//
// Source: nats-server v2.15.2, server/filestore.go, writeMsgRecordLocked.
const (
	recordHead    = 22
	recordHash    = 8
	recordHeaders = 1 << 31 // bit of the length: there are headers
	recordMax     = 32 << 20

	// damagedDir holds the files as they were before parts were cut out.
	damagedDir = "damaged"

	// relaxedSlack is more than a server in relaxed mode leaves unwritten: after a
	// power loss the newest records may be there without some before them, and
	// cutting the file at the first gap loses no more than was promised.
	relaxedSlack = 10 * syncRelaxed
)

// mendJournal cuts what cannot be read out of the journal's files in a data folder
// that no server uses. A gap of the last file that is less than slack older than its
// newest record is left to the server.
func mendJournal(dir string, slack time.Duration, log *slog.Logger) error {
	folder := filepath.Join(dir, streamsDir, accountJournal, "streams", StreamJournal, "msgs")
	files, err := messageFiles(folder)
	if err != nil {
		return fmt.Errorf("files of the journal: %w", err)
	}
	for i, file := range files {
		allowed := time.Duration(0)
		if i == len(files)-1 {
			allowed = slack
		}
		if err := mendFile(dir, file, allowed, log); err != nil {
			return fmt.Errorf("files of the journal: %w", err)
		}
	}
	return nil
}

func mendFile(dir, name string, slack time.Duration, log *slog.Logger) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b, err := newBlock(name)
	if err != nil {
		return err
	}
	parts := b.damage(text, slack)
	if len(parts) == 0 {
		return nil
	}
	kept, err := keepDamaged(dir, name, text)
	if err != nil {
		return err
	}
	// The index would say that nothing is missing.
	if err := os.Remove(filepath.Join(filepath.Dir(name), "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log.Error("a file of the journal is damaged, what can be read of it is kept", "file", name, "copy", kept)
	return replaceFile(name, without(text, parts), 0o600)
}

// keepDamaged stores a copy of a damaged file.
func keepDamaged(dir, name string, text []byte) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, damagedDir), 0o700); err != nil {
		return "", err
	}
	kept := filepath.Join(dir, damagedDir, time.Now().UTC().Format("20060102T150405.000000000Z")+"-"+filepath.Base(name))
	return kept, replaceFile(kept, text, 0o600)
}

// block reads the records of one file.
type block struct {
	hash hash.Hash64
	sum  [recordHash]byte
}

// newBlock is for the file of a stream's messages with the given name, "7.blk": the
// key of its hashes is made of that.
func newBlock(name string) (*block, error) {
	var index uint32
	if _, err := fmt.Sscanf(filepath.Base(name), "%d.blk", &index); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", StreamJournal, index))
	digest, err := highwayhash.New64(key[:])
	return &block{hash: digest}, err
}

// span is a part of a file.
type span struct{ from, to int }

// damage gives the parts of a file that cannot be read and have records behind
// them. What cannot be read at the end is left out: it may be a write that a power
// loss cut short, which the server recognises.
func (b *block) damage(text []byte, slack time.Duration) (parts []span) {
	for at := 0; at < len(text); {
		if size, _, ok := b.record(text[at:]); ok {
			at += size
			continue
		}
		next := b.next(text, at+1)
		if next < 0 {
			break
		}
		if _, behind, _ := b.record(text[next:]); b.newest(text[next:]).Sub(behind) < slack {
			break
		}
		parts = append(parts, span{at, next})
		at = next
	}
	return parts
}

// newest is when the last record that can be read was written.
func (b *block) newest(text []byte) time.Time {
	var newest time.Time
	for at := 0; at >= 0 && at < len(text); {
		if size, written, ok := b.record(text[at:]); ok {
			at, newest = at+size, written
			continue
		}
		at = b.next(text, at+1)
	}
	return newest
}

// without gives a text without some parts of it.
func without(text []byte, parts []span) []byte {
	var out []byte
	at := 0
	for _, p := range parts {
		out = append(out, text[at:p.from]...)
		at = p.to
	}
	return append(out, text[at:]...)
}

// record reads the record at the start of text.
func (b *block) record(text []byte) (size int, written time.Time, ok bool) {
	if len(text) < recordHead+recordHash {
		return 0, time.Time{}, false
	}
	length := binary.LittleEndian.Uint32(text)
	size = int(length &^ recordHeaders)
	subject := recordHead + int(binary.LittleEndian.Uint16(text[20:]))
	body := subject
	if length&recordHeaders != 0 {
		body += 4
	}
	if size > recordMax || size > len(text) || body > size-recordHash {
		return 0, time.Time{}, false
	}
	b.hash.Reset()
	b.hash.Write(text[4:20])
	b.hash.Write(text[recordHead:subject])
	b.hash.Write(text[body : size-recordHash])
	written = time.Unix(0, int64(binary.LittleEndian.Uint64(text[12:])))
	return size, written, bytes.Equal(b.hash.Sum(b.sum[:0]), text[size-recordHash:size])
}

// next finds the first record of a commit that begins at or after a place, -1 when
// there is none.
func (b *block) next(text []byte, from int) int {
	for from < len(text) {
		i := bytes.Index(text[from:], []byte(prefixJournal))
		if i < 0 {
			return -1
		}
		if at := from + i - recordHead; at >= 0 {
			if _, _, ok := b.record(text[at:]); ok {
				return at
			}
		}
		from += i + 1
	}
	return -1
}

// replaceFile writes a file so that after a crash it is there as a whole, or as it
// was before.
func replaceFile(name string, text []byte, mode os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err == nil {
		return syncFile(filepath.Dir(name))
	}
	return errors.Join(err, os.Remove(file.Name()))
}

// syncFile flushes a file or folder, one that is gone meanwhile counting as done.
func syncFile(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
