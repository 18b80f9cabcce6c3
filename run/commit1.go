package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Version 1 of the stored form: one line of JSON for the version and one for
// each event. It is only read.

type header1 struct {
	Version int `json:"v"`
}

type event1 struct {
	Kind string          `json:"k"`
	Run  ID              `json:"r,omitempty"`
	At   int64           `json:"t"` // UTC nanoseconds
	Data json.RawMessage `json:"d,omitempty"`
}

func decodeCommit1(stored []byte) (*StoredCommit, error) {
	header, lines, _ := bytes.Cut(stored, []byte("\n"))
	var h header1
	if err := json.Unmarshal(header, &h); err != nil {
		return nil, fmt.Errorf("not a commit, or one that is %w: %w", ErrDamaged, err)
	}
	if h.Version != 1 {
		return nil, versionError(h.Version)
	}
	c := &StoredCommit{Version: 1, After: UnknownRevision}
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\n"))
		e, err := decodeEvent1(line)
		if err != nil {
			return nil, fmt.Errorf("event %d of the commit is %w: %w", len(c.Events), ErrDamaged, err)
		}
		c.Events = append(c.Events, e)
	}
	return c, nil
}

func decodeEvent1(line []byte) (Event, error) {
	var s event1
	if err := json.Unmarshal(line, &s); err != nil {
		return Event{}, err
	}
	data := newEventData1(s.Kind)
	if data == nil {
		return Event{}, fmt.Errorf("unknown kind %q", s.Kind)
	}
	if err := json.Unmarshal(s.Data, data); err != nil {
		return Event{}, fmt.Errorf("%s: %w", s.Kind, err)
	}
	return Event{Run: s.Run, At: time.Unix(0, s.At).UTC(), Data: data}, nil
}

func newEventData1(kind string) EventData {
	switch kind {
	case KindSubmitted:
		return new(Submitted)
	case KindStarted:
		return new(Started)
	case KindAttemptStarted:
		return new(AttemptStarted)
	case KindAttemptFinished:
		return new(AttemptFinished)
	case KindTaskEnded:
		return new(TaskEnded)
	case KindCancelRequested:
		return new(CancelRequested)
	case KindFinished:
		return new(Finished)
	case KindDefined:
		return new(Defined)
	case KindDecided:
		return new(Decided)
	}
	return nil
}
