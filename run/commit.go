package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CommitVersion is the version of the encoding that [Commit] writes.
const CommitVersion = 1

// ErrFenced is what a journal answers to an append whose expected revision is
// not its last one: somebody else writes this journal. Nothing was recorded.
var ErrFenced = errors.New("another writer has appended to the journal")

// Commit is the events that become durable together, in their stored form: one
// line of JSON for the version and one for each event. The zero value is empty.
type Commit struct {
	lines []byte
}

type commitHeader struct {
	Version int `json:"v"`
}

type storedEvent struct {
	Kind string          `json:"k"`
	Run  ID              `json:"r,omitempty"`
	At   int64           `json:"t"` // UTC nanoseconds
	Data json.RawMessage `json:"d,omitempty"`
}

// Add appends events, all or none. It fails when an event holds bytes that are
// not the JSON they should be.
func (c *Commit) Add(events ...Event) error {
	lines := c.lines
	if len(lines) == 0 {
		lines = fmt.Appendf(lines, `{"v":%d}`+"\n", CommitVersion)
	}
	for _, e := range events {
		var err error
		if lines, err = appendEvent(lines, e); err != nil {
			return fmt.Errorf("event %s of run %s: %w", e.Data.Kind(), e.Run, err)
		}
	}
	c.lines = lines
	return nil
}

// Append adds the events of another commit.
func (c *Commit) Append(other *Commit) {
	if len(c.lines) == 0 {
		c.lines = append(c.lines, other.lines...)
		return
	}
	_, events, _ := bytes.Cut(other.lines, []byte("\n"))
	c.lines = append(c.lines, events...)
}

// Bytes is the commit as the journal stores it. It is valid until the next Add.
func (c *Commit) Bytes() []byte { return c.lines }

// Size is the length of Bytes.
func (c *Commit) Size() int { return len(c.lines) }

// appendEvent writes a storedEvent whose data is encoded once: the encoder would
// go through it again.
func appendEvent(lines []byte, e Event) ([]byte, error) {
	head, err := EncodeJSON(storedEvent{Kind: e.Data.Kind(), Run: e.Run, At: e.At.UnixNano()})
	if err != nil {
		return nil, err
	}
	data, err := EncodeJSON(e.Data)
	if err != nil {
		return nil, err
	}
	lines = append(lines, head[:len(head)-1]...)
	lines = append(lines, `,"d":`...)
	lines = append(lines, data...)
	return append(lines, "}\n"...), nil
}

// DecodeCommit gives the events of a stored commit, of any version so far.
func DecodeCommit(stored []byte) ([]Event, error) {
	header, lines, _ := bytes.Cut(stored, []byte("\n"))
	var h commitHeader
	if err := json.Unmarshal(header, &h); err != nil {
		return nil, fmt.Errorf("not a commit: %w", err)
	}
	if h.Version != CommitVersion {
		return nil, fmt.Errorf("the commit has format version %d and this flowhost reads version %d: a newer one is needed", h.Version, CommitVersion)
	}
	var events []Event
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\n"))
		e, err := decodeEvent(line)
		if err != nil {
			return nil, fmt.Errorf("event %d of the commit: %w", len(events), err)
		}
		events = append(events, e)
	}
	return events, nil
}

func decodeEvent(line []byte) (Event, error) {
	var s storedEvent
	if err := json.Unmarshal(line, &s); err != nil {
		return Event{}, err
	}
	data := newEventData(s.Kind)
	if data == nil {
		return Event{}, fmt.Errorf("unknown kind %q", s.Kind)
	}
	if err := json.Unmarshal(s.Data, data); err != nil {
		return Event{}, fmt.Errorf("%s: %w", s.Kind, err)
	}
	return Event{Run: s.Run, At: time.Unix(0, s.At).UTC(), Data: data}, nil
}
