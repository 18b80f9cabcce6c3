package tasklog

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// A message of FH_LOGS holds lines of one attempt, in their order. Its subject
// names the flow, its headers the run, the task and the attempt, so that a reader
// need not decode what others wrote. Its body is storedLines as JSON:
//
//	{"key":"eu","lines":[{"t":1767323045025123,"l":"info","m":"counted","f":{"words":6}}]}
type storedLines struct {
	Key   string       `json:"key,omitempty"` // the item's in a fan-out; any text, and so not in a header
	Lines []storedLine `json:"lines"`
}

type storedLine struct {
	Time    int64           `json:"t"` // microseconds since the Unix epoch
	Level   string          `json:"l"`
	Message string          `json:"m"`
	Fields  json.RawMessage `json:"f,omitempty"` // a JSON object
}

// logMessage is a message with what it frees when it is settled.
type logMessage struct {
	*nats.Msg
	lines int
	cost  int64 // bytes of the buffer
}

// next makes a message of the batch's first lines, which it takes out. None is
// larger than limit.
func (b *logBatch) next(id string, limit int) logMessage {
	m := logMessage{}
	body := storedLines{Key: b.key}
	for len(b.lines) > 0 {
		first := &b.lines[0]
		if m.lines > 0 && m.cost+first.cost > int64(min(logMessageBytes, limit/maxGrowth)) {
			break
		}
		body.Lines = append(body.Lines, first.stored(limit))
		m.lines, m.cost = m.lines+1, m.cost+first.cost
		*first = logLine{} // the array lives on
		b.lines = b.lines[1:]
	}
	if len(b.lines) == 0 {
		m.cost += logBatchCost
	}
	data, err := run.EncodeJSON(body)
	if err != nil { // fields that are no JSON: the host lets none through
		for i := range body.Lines {
			body.Lines[i].Fields = nil
		}
		data, _ = run.EncodeJSON(body)
	}
	m.Msg = &nats.Msg{
		Subject: bus.LogSubject(b.flow, b.run), Data: data,
		Header: nats.Header{
			jetstream.MsgIDHeader: {id},
			bus.HeaderRun:         {string(b.run)},
			bus.HeaderTask:        {b.task},
			bus.HeaderAttempt:     {strconv.Itoa(b.attempt)},
		},
	}
	return m
}

// maxGrowth is by how much text can become longer in JSON, and two more: for
// fields as long as the message, and for the rest of a line.
const maxGrowth = 6 + 2

// stored is the line as it is stored. It is cut to what fits into one message:
// where logs may be larger than messages, lines may be so, too.
func (l *logLine) stored(limit int) storedLine {
	s := storedLine{Time: l.at.UnixMicro(), Level: l.Level, Message: l.Message, Fields: l.Fields}
	room := limit / maxGrowth
	if len(s.Message) > room {
		s.Message = cutText(s.Message, room)
	}
	if len(s.Fields) > room {
		s.Fields = json.RawMessage(fmt.Sprintf(`{"bytes_left_out":%d}`, len(s.Fields)))
	}
	return s
}

// cutText is the beginning of a text, of at most so many bytes with the mark at
// its end.
func cutText(text string, limit int) string {
	const mark = "…"
	end := max(limit-len(mark), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// logFilter selects lines of one run.
type logFilter struct {
	query   run.LogQuery
	flow    string
	attempt string // as in the header; "" for all
	level   int    // the least
}

func newLogFilter(flow string, q run.LogQuery) (logFilter, error) {
	f := logFilter{query: q, flow: flow, level: api.Severity(q.Level)}
	if q.Attempt > 0 {
		f.attempt = strconv.Itoa(q.Attempt)
	}
	return f, api.CheckLevel(q.Level)
}

// selects reports whether a message may hold lines that are asked for.
func (f *logFilter) selects(header nats.Header) bool {
	return header.Get(bus.HeaderRun) == string(f.query.Run) &&
		(f.query.Task == "" || header.Get(bus.HeaderTask) == f.query.Task) &&
		(f.attempt == "" || header.Get(bus.HeaderAttempt) == f.attempt)
}

// decode gives all lines of a message, none when it is not one of ours, or of another
// item than the query selects.
func (f *logFilter) decode(m jetstream.Msg) []run.LogEntry {
	var body storedLines
	attempt, err := strconv.Atoi(m.Headers().Get(bus.HeaderAttempt))
	if err != nil || json.Unmarshal(m.Data(), &body) != nil || f.query.Key != "" && f.query.Key != body.Key {
		return nil
	}
	entries := make([]run.LogEntry, len(body.Lines))
	for i, l := range body.Lines {
		entries[i] = run.LogEntry{
			Run: f.query.Run, Flow: f.flow, Task: m.Headers().Get(bus.HeaderTask), Key: body.Key, Attempt: attempt,
			At:      time.UnixMicro(l.Time).UTC(),
			LogLine: run.LogLine{Level: l.Level, Message: l.Message, Fields: l.Fields},
		}
	}
	return entries
}

// shows reports whether a line is severe enough. What has an unknown level is.
func (f *logFilter) shows(e *run.LogEntry) bool {
	level := api.Severity(e.Level)
	return level < 0 || level >= f.level
}
