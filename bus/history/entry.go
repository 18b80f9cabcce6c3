package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/varint"
	"github.com/flowhost/flowhost/run"
)

// finalStates are the states in which runs end.
var finalStates = []run.State{run.Succeeded, run.Failed, run.Canceled}

// indexEntry is what the index knows of a record: its place in the stream and
// what a list shows of it.
type indexEntry struct {
	seq uint64
	run.Summary

	// Of what is not indexed yet: the artifacts that the record refers to, which are read
	// from it when only its headers are there.
	artifacts    []string
	hasArtifacts bool
}

// parseEntry reads the headers of a message of the stream. Messages that
// somebody else put there are not ok.
func parseEntry(seq uint64, subject string, header nats.Header) (e indexEntry, ok bool) {
	e.seq = seq
	if json.Unmarshal([]byte(header.Get(bus.HeaderSummary)), &e.Summary) != nil {
		return e, false
	}
	e.hasArtifacts = header.Get(bus.HeaderArtifacts) != ""
	_, err := run.ParseID(string(e.Run))
	return e, err == nil && bus.CheckToken(e.Flow) == nil && slices.Contains(finalStates, e.State) &&
		subject == bus.HistorySubject(e.Flow, e.State)
}

// endsAs reports whether the entry is of the given end of its run.
func (e *indexEntry) endsAs(s run.Summary) bool {
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
func (e *indexEntry) over() string {
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

// encode gives the entry's stored form, without what its key contains.
func (e *indexEntry) encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 64), e.seq)
	b = varint.AppendText(b, e.Flow)
	b = varint.AppendTime(b, e.CreatedAt)
	var finished time.Time
	if e.FinishedAt != nil {
		finished = *e.FinishedAt
	}
	b = varint.AppendTime(b, finished)
	b = varint.AppendText(b, string(e.Trigger.Kind))
	b = varint.AppendText(b, e.Trigger.Name)
	b = varint.AppendTime(b, e.Trigger.Time)
	b = varint.AppendText(b, e.Error)
	return varint.AppendText(b, string(e.Parent))
}

// decodeEntry reads what encode wrote.
func decodeEntry(id run.ID, state run.State, stored []byte) (indexEntry, error) {
	r := varint.Reader{Rest: stored}
	e := indexEntry{seq: r.Number(), Summary: run.Summary{Run: id, State: state, Flow: r.Text(), CreatedAt: r.Time()}}
	if finished := r.Time(); !finished.IsZero() {
		e.FinishedAt = &finished
	}
	e.Trigger = run.TriggerSummary{Kind: run.TriggerKind(r.Text()), Name: r.Text(), Time: r.Time()}
	e.Error = r.Text()
	e.Parent = run.ID(r.Text())
	if r.Broken || len(r.Rest) > 0 {
		return e, errIndexDamaged
	}
	return e, nil
}
