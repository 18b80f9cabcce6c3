package natsd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// A server that starts after a crash cuts a file of a stream at the first record
// that it cannot read, and the good ones behind it are gone without a word; so does a
// running one that finds such a record. Of the files of flowhost's streams the
// unreadable parts alone are therefore cut out before the server sees them. The loss
// is no larger than it must be, and the log names it.
const (
	// damagedDir holds the files as they were before parts were cut out.
	damagedDir = "damaged"

	// relaxedSlack is more than a server in relaxed mode leaves unwritten: after a
	// power loss the newest records may be there without some before them, and
	// cutting the file at the first gap loses no more than was promised.
	relaxedSlack = 10 * syncRelaxed

	// historySlack is the same for the history, which the server writes when it likes
	// to: its publisher keeps what the server was not made to write, and publishes what
	// follows on the stream's end once more.
	historySlack = 10 * jskit.UnsyncedTime
)

// mendedStream is a stream that holds something that flowhost has promised to keep.
type mendedStream struct {
	name     string
	prefixes []string      // with which its subjects begin
	dense    bool          // nothing is removed but from its start: each sequence has a record
	slack    time.Duration // as relaxedSlack, in every mode
	loss     string        // what the loss of messages means, and what to do
}

var mendedStreams = []mendedStream{
	{name: bus.StreamJournal, prefixes: []string{bus.PrefixJournal},
		loss: "the host starts if a snapshot holds what is lost, and refuses to start otherwise: put a backup of the data directory in its place then"},
	{name: bus.StreamTriggers, prefixes: []string{bus.PrefixTrigger}, dense: true,
		loss: "those that no run was made of yet start none: have their senders send them again"},
	{name: bus.StreamDeadLetter, prefixes: []string{bus.PrefixDeadLetter}, loss: "these dead letters are gone"},
	{name: bus.StreamHistory, prefixes: []string{bus.PrefixHistory, bus.PrefixParts, bus.PrefixFlush}, slack: historySlack,
		loss: "the records of these finished runs are gone, but for those that the journal still holds"},
	{name: bus.StreamLogs, prefixes: []string{bus.PrefixLog}, loss: "these lines of tasks' logs are gone"},
	{name: bus.BucketStream(bus.BucketSnapshots), prefixes: bucketPrefixes(bus.BucketSnapshots),
		loss: "an older snapshot and more of the journal take the place of a damaged one"},
	{name: bus.BucketStream(bus.BucketBlobs), prefixes: bucketPrefixes(bus.BucketBlobs),
		loss: "runs that need one of these payloads fail when they come to it"},
}

func bucketPrefixes(bucket string) []string {
	var all []string
	for _, subject := range bus.BucketSubjects(bucket) {
		all = append(all, strings.TrimSuffix(subject, ">"))
	}
	return all
}

// mendStreams cuts what cannot be read out of the files of the streams in a data
// directory that no server uses, and reports what is lost.
func mendStreams(dir string, relaxed bool, log *slog.Logger) error {
	buffer := new(bytes.Buffer)
	for i := range mendedStreams {
		s := &mendedStreams[i]
		folders, err := filepath.Glob(filepath.Join(dir, streamsDir, "*", "streams", s.name, "msgs"))
		if err != nil {
			return err
		}
		for _, folder := range folders {
			m := mending{mendedStream: s, dir: dir, folder: folder, slack: s.slack, log: log.With("stream", s.name), buffer: buffer}
			if relaxed {
				m.slack = max(m.slack, relaxedSlack)
			}
			if err := m.mend(); err != nil {
				return fmt.Errorf("files of stream %s: %w", s.name, err)
			}
		}
	}
	return nil
}

// mending is the work on the files of one stream.
type mending struct {
	*mendedStream
	dir    string        // the data directory
	folder string        // of the stream's messages
	slack  time.Duration // a gap of the last file that is less older than its newest record is left to the server
	log    *slog.Logger

	last   uint64 // sequence of the messages that were read
	broken bool   // the end of the file before cannot be read
	lost   jskit.Ranges
	copies int
	buffer *bytes.Buffer // of the file that is being read
}

func (m *mending) mend() error {
	files, err := messageFiles(m.folder)
	if err != nil {
		return err
	}
	indexed := readStreamIndex(m.folder, m.name)
	for i, file := range files {
		if err := m.file(file, i == len(files)-1); err != nil {
			return err
		}
	}
	m.compare(indexed)
	if len(m.lost) > 0 {
		m.log.Error("stored messages are lost: files of a stream are damaged or missing; "+m.loss,
			"sequences", m.lost.String(), "at_most", m.lost.Count(), "copies", m.copies, "directory", filepath.Join(m.dir, damagedDir))
	}
	return nil
}

// file mends one file.
func (m *mending) file(name string, last bool) error {
	text, err := m.read(name)
	if err != nil {
		return err
	}
	b, err := newBlock(m.mendedStream, name)
	if err != nil {
		return err
	}
	c := b.read(text)
	if (m.dense || m.broken) && m.last > 0 && c.first > m.last+1 && !c.startsWithHole() {
		m.lost.Add(m.last+1, c.first-1)
	}
	m.broken = len(c.holes) > 0 && c.tail(c.holes[len(c.holes)-1])
	cut, indexed := m.cuts(&c, last)
	m.last = max(m.last, c.last)
	if !indexed {
		// The index would mean that nothing is missing.
		if err := os.Remove(filepath.Join(m.folder, streamIndexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(cut) == 0 {
		return nil
	}
	kept, err := keepDamaged(m.dir, m.name, name, text)
	if err != nil {
		return err
	}
	m.copies++
	m.log.Error("a file of a stream is damaged, what can be read of it is kept", "file", name, "copy", kept)
	return replaceFile(name, without(text, cut), 0o600)
}

// read gives the content of a file, until the next one is read.
func (m *mending) read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m.buffer.Reset()
	_, err = m.buffer.ReadFrom(file)
	return m.buffer.Bytes(), err
}

// cuts records the losses of a file's holes, and returns those that are to be cut out, and
// whether the server's index still holds.
//
// The end of the stream is cut off, and the index stays, by which the server knows how far
// the stream went. With the damaged end in place it would not look at checksums: it took the
// sequence of a damaged record for a real one, and filled the gap before it, however long.
func (m *mending) cuts(c *content, last bool) (cut []hole, indexed bool) {
	for i, h := range c.holes {
		before := max(h.before, m.last)
		switch {
		case last && h.torn:
			m.log.Warn("the last write to a stream was cut short: nobody was acknowledged, unless the file is damaged",
				"after_sequence", before, "bytes", h.to-h.from)
			return c.holes[:i], i == 0
		case last && !c.tail(h) && c.newest.Sub(h.written) < m.slack:
			m.log.Warn("a stream has lost messages that were not on the disk yet", "after_sequence", before, "until", c.last)
			c.last = before
			return c.holes[:i], false // the server cuts the rest off when it reads the file
		case last && c.tail(h):
			m.log.Error("the end of a stream is damaged", "after_sequence", before, "bytes", h.to-h.from)
			return c.holes[:i+1], i == 0
		case h.after > before+1:
			m.lost.Add(max(before+1, h.after-min(h.after-1, uint64(h.to-h.from)/recordMark)), h.after-1)
		}
	}
	return c.holes, len(c.holes) == 0
}

// compare notes what the server had when it wrote its index, and is there no more.
// What is missing at the stream's start may have been removed since.
func (m *mending) compare(indexed streamIndex) {
	if first := max(m.last+1, indexed.first); first <= indexed.last {
		m.lost.Add(first, indexed.last)
	}
}

// keepDamaged stores a copy of a damaged file of a stream.
func keepDamaged(dir, stream, name string, text []byte) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, damagedDir), 0o700); err != nil {
		return "", err
	}
	kept := filepath.Join(dir, damagedDir, time.Now().UTC().Format("20060102T150405.000000000Z")+"-"+stream+"-"+filepath.Base(name))
	return kept, replaceFile(kept, text, 0o600)
}
