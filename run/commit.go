package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CommitVersion is the version of the encoding that [EncodeCommit] writes.
const CommitVersion = 1

// ErrFenced is what a journal answers to an append whose expected revision is
// not its last one: somebody else writes this journal. Nothing was recorded.
var ErrFenced = errors.New("another writer has appended to the journal")

// commit is the stored form of events that became durable together.
type commit struct {
	Version int           `json:"v"`
	Events  []storedEvent `json:"e"`
}

type storedEvent struct {
	Kind string          `json:"k"`
	Run  ID              `json:"r,omitempty"`
	At   int64           `json:"t"` // UTC nanoseconds
	Data json.RawMessage `json:"d"`
}

// EncodeCommit encodes events as one message of the journal.
func EncodeCommit(events []Event) ([]byte, error) {
	c := commit{Version: CommitVersion, Events: make([]storedEvent, len(events))}
	for i, e := range events {
		data, err := marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("event %s of run %s: %w", e.Data.Kind(), e.Run, err)
		}
		c.Events[i] = storedEvent{Kind: e.Data.Kind(), Run: e.Run, At: e.At.UnixNano(), Data: data}
	}
	return marshal(c)
}

// marshal leaves the bytes of recorded JSON as they are: encoding/json would
// otherwise escape <, > and &, and a retry after a restart would not see the
// input that the first attempt saw.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// DecodeCommit is the inverse of [EncodeCommit], for every version so far.
func DecodeCommit(message []byte) ([]Event, error) {
	var c commit
	if err := json.Unmarshal(message, &c); err != nil {
		return nil, fmt.Errorf("not a commit: %w", err)
	}
	if c.Version != CommitVersion {
		return nil, fmt.Errorf("the commit has format version %d, this flowhost reads version %d: use a newer one", c.Version, CommitVersion)
	}
	events := make([]Event, len(c.Events))
	for i, s := range c.Events {
		data := newEventData(s.Kind)
		if data == nil {
			return nil, fmt.Errorf("event %d has the unknown kind %q", i, s.Kind)
		}
		if err := json.Unmarshal(s.Data, data); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", i, s.Kind, err)
		}
		events[i] = Event{Run: s.Run, At: time.Unix(0, s.At).UTC(), Data: data}
	}
	return events, nil
}
