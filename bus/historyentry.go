package bus

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/run"
)

// finalStates are the states in which runs end.
var finalStates = []run.State{run.Succeeded, run.Failed, run.Canceled}

// historyEntry is what the index knows of a record: its place in the stream and
// what a list shows of it.
type historyEntry struct {
	seq uint64
	run.Summary
}

// parseHistoryEntry reads the headers of a message of the stream. Messages that
// somebody else put there are not ok.
func parseHistoryEntry(seq uint64, subject string, header nats.Header) (e historyEntry, ok bool) {
	e.seq = seq
	if json.Unmarshal([]byte(header.Get(HeaderSummary)), &e.Summary) != nil {
		return e, false
	}
	_, err := run.ParseID(string(e.Run))
	return e, err == nil && CheckToken(e.Flow) == nil && slices.Contains(finalStates, e.State) &&
		subject == HistorySubject(e.Flow, e.State)
}

// endsAs reports whether the entry is of the given end of its run.
func (e *historyEntry) endsAs(s run.Summary) bool {
	if e.State != s.State || e.FinishedAt == nil || s.FinishedAt == nil {
		return false
	}
	return e.FinishedAt.Equal(*s.FinishedAt)
}

// Lanes over all flows: the runs of sub-flows, which may be very many, are apart
// from the others, so that neither get in the way of the other.
const (
	laneTop      = ""
	laneChildren = "\x01"
)

// over is the lane over all flows that the entry is in.
func (e *historyEntry) over() string {
	if e.Parent != "" {
		return laneChildren
	}
	return laneTop
}

// A lane is the entries of one flow in one state, or those of all flows in it. A lane's name is the beginning of its keys; neither flows nor states
// have a zero byte in their names.
func lane(flow string, state run.State) []byte {
	key := append([]byte(flow), 0)
	key = append(key, state...)
	return append(key, 0)
}

// runKey is where the index has an entry in the order of ids.
func runKey(flow string, state run.State, id run.ID) []byte {
	return append(lane(flow, state), id...)
}

// orderKey is where the index has an entry in the order of the stream.
func orderKey(flow string, state run.State, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(lane(flow, state), seq)
}

// splitLane gives flow and state of a key that begins with a lane.
func splitLane(key []byte) (flow string, state run.State, ok bool) {
	first, rest, found := bytes.Cut(key, []byte{0})
	second, _, found2 := bytes.Cut(rest, []byte{0})
	return string(first), run.State(second), found && found2
}

// encode gives the entry's stored form, without what its key says.
func (e *historyEntry) encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 64), e.seq)
	b = appendText(b, e.Flow)
	b = appendTime(b, e.CreatedAt)
	var finished time.Time
	if e.FinishedAt != nil {
		finished = *e.FinishedAt
	}
	b = appendTime(b, finished)
	b = appendText(b, string(e.Trigger.Kind))
	b = appendText(b, e.Trigger.Name)
	b = appendTime(b, e.Trigger.Time)
	b = appendText(b, e.Error)
	return appendText(b, string(e.Parent))
}

// decodeHistoryEntry reads what encode wrote.
func decodeHistoryEntry(id run.ID, state run.State, stored []byte) (historyEntry, error) {
	r := entryReader{rest: stored}
	e := historyEntry{seq: r.number(), Summary: run.Summary{Run: id, State: state, Flow: r.text(), CreatedAt: r.time()}}
	if finished := r.time(); !finished.IsZero() {
		e.FinishedAt = &finished
	}
	e.Trigger = run.TriggerSummary{Kind: run.TriggerKind(r.text()), Name: r.text(), Time: r.time()}
	e.Error = r.text()
	e.Parent = run.ID(r.text())
	if r.broken || len(r.rest) > 0 {
		return e, errIndexDamaged
	}
	return e, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime writes UTC nanoseconds, 0 for the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	return binary.AppendVarint(b, t.UnixNano())
}

// entryReader reads fields one after the other; broken says that there was not
// what there should be.
type entryReader struct {
	rest   []byte
	broken bool
}

func (r *entryReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	return take(r, v, n)
}

func (r *entryReader) signed() int64 {
	v, n := binary.Varint(r.rest)
	return take(r, v, n)
}

func (r *entryReader) time() time.Time {
	v := r.signed()
	if v == 0 {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}

func (r *entryReader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.broken, r.rest = true, nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

// take passes n bytes, that of a varint.
func take[T uint64 | int64](r *entryReader, v T, n int) T {
	if n <= 0 {
		r.broken, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
