package events

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/flowhost/flowhost/bus/internal/recordjson"
	"github.com/flowhost/flowhost/run"
)

// An event as it is published is a JSON object: "id", "kind", "flow", "run", "at", and
// the fields that its kind has. Inputs and outputs of tasks are in the record of the
// event "finished" only. It is written by hand: a host encodes two events for each
// task, and the encoder of the standard library takes most of a microsecond for one.

// ID names an event for good: a revision alone is given to another commit when
// the journal has lost its end.
func ID(shard int, revision uint64, index int, sum uint32) string {
	return string(appendID(make([]byte, 0, 32), shard, revision, index, sum))
}

func appendID(out []byte, shard int, revision uint64, index int, sum uint32) []byte {
	out = append(strconv.AppendInt(out, int64(shard), 10), '-')
	out = append(strconv.AppendUint(out, revision, 10), '-')
	out = append(strconv.AppendInt(out, int64(index), 10), '-')
	return appendHex(out, sum)
}

// appendHex appends eight digits.
func appendHex(out []byte, n uint32) []byte {
	var digits [4]byte
	return hex.AppendEncode(out, binary.BigEndian.AppendUint32(digits[:0], n))
}

// appendWithRecord appends an event's JSON, in at most limit bytes where that can be had by
// leaving parts of the record out.
func appendWithRecord(out []byte, n *run.Notice, id []byte, limit int) ([]byte, error) {
	from := len(out)
	out, err := appendEvent(out, n, id)
	if err != nil || n.Record == nil {
		return out, err
	}
	const member = `,"record":`
	record, err := recordjson.Of(*n)
	if err == nil && len(out)-from+len(record)+len(member) <= limit {
		return extend(out, member, record), nil
	}
	out = extend(out, `,"truncated":true`, nil)
	left := limit - (len(out) - from) - len(member)
	if err == nil {
		record, err = recordjson.Fit(n.Record, nil, left, recordjson.Folded, recordjson.Slim)
	}
	if err != nil {
		return out[:from], fmt.Errorf("event %s: %w", id, err)
	}
	if len(record) > left {
		return out, nil
	}
	return extend(out, member, record), nil
}

// Encode gives an event's JSON without its record.
func Encode(n *run.Notice, id string) ([]byte, error) {
	return appendEvent(make([]byte, 0, 320), n, []byte(id))
}

// appendEvent appends an event's JSON without its record. After an error it returns out.
func appendEvent(out []byte, n *run.Notice, id []byte) ([]byte, error) {
	w := objectWriter{out: append(append(append(out, `{"id":"`...), id...), '"')}
	w.text("kind", n.Event.Data.Kind())
	w.text("flow", n.Flow)
	w.text("run", string(n.Event.Run))
	w.time("at", n.Event.At)
	w.data(n.Event.Data)
	w.out = append(w.out, '}')
	if w.err != nil {
		return out, fmt.Errorf("event %s: %w", id, w.err)
	}
	return w.out, nil
}

// objectWriter writes the members of a JSON object. Empty ones are left out.
type objectWriter struct {
	out []byte
	err error
}

// data writes what the kind of an event adds.
func (w *objectWriter) data(data run.EventData) {
	switch d := data.(type) {
	case *run.AttemptStarted:
		w.attempt(d.TaskRef, d.Attempt)
	case *run.AttemptFinished:
		w.attempt(d.TaskRef, d.Attempt)
		w.text("outcome", string(d.Outcome))
		w.failure(d.Failure)
		w.time("retry_at", d.RetryAt)
		w.name("duration_ms")
		w.out = strconv.AppendFloat(w.out, float64(d.Duration)/float64(time.Millisecond), 'f', -1, 64)
	case *run.TaskEnded:
		w.end(d.TaskRef, d.State, d.Failure)
		w.text("reason", d.Reason)
	case *run.TaskReused:
		w.end(d.TaskRef, d.State, d.Failure)
	case *run.TaskCancelRequested:
		w.end(d.TaskRef, "", d.Failure)
	case *run.TaskExpanded:
		w.text("task", d.Task)
	case *run.WaitStarted:
		w.text("task", d.Task)
		w.text("subject", d.Subject)
		w.text("approval", d.Approval)
		w.time("due", d.Due)
		w.time("deadline", d.Deadline)
	case *run.WaitEnded:
		w.end(run.TaskRef{Task: d.Task}, d.State, d.Failure)
	case *run.ChildStarted:
		w.attempt(d.TaskRef, d.Attempt)
		w.text("child", string(d.Child))
	case *run.CancelRequested:
		w.failure(d.Failure)
	case *run.Finished:
		w.text("state", string(d.State))
		w.failure(d.Failure)
	}
}

func (w *objectWriter) attempt(ref run.TaskRef, attempt int) {
	w.text("task", ref.Task)
	w.text("key", ref.Key)
	if attempt != 0 {
		w.name("attempt")
		w.out = strconv.AppendInt(w.out, int64(attempt), 10)
	}
}

func (w *objectWriter) end(ref run.TaskRef, state run.State, failure *run.Failure) {
	w.text("task", ref.Task)
	w.text("key", ref.Key)
	w.text("state", string(state))
	w.failure(failure)
}

// name begins a member. Names need no escapes.
func (w *objectWriter) name(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(append(append(w.out, '"'), name...), '"', ':')
}

func (w *objectWriter) text(name, value string) {
	if value == "" {
		return
	}
	w.name(name)
	if plain(value) {
		w.out = append(append(append(w.out, '"'), value...), '"')
		return
	}
	w.value(value)
}

// plain reports whether JSON has a text as it is.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *objectWriter) time(name string, at time.Time) {
	if at.IsZero() {
		return
	}
	w.name(name)
	w.out = append(at.AppendFormat(append(w.out, '"'), time.RFC3339Nano), '"')
}

func (w *objectWriter) failure(failure *run.Failure) {
	if failure != nil {
		w.name("error")
		w.value(failure)
	}
}

func (w *objectWriter) value(value any) {
	text, err := run.EncodeJSON(value)
	if err != nil {
		w.err = err
	}
	w.out = append(w.out, text...)
}

// Extend adds a member to a JSON object that has some: the encoder would go through
// an encoded value again.
func Extend(object []byte, member string, value []byte) []byte {
	longer := make([]byte, 0, len(object)+len(member)+len(value))
	return extend(append(longer, object...), member, value)
}

// extend adds a member to the object at the end of out.
func extend(out []byte, member string, value []byte) []byte {
	return append(append(append(out[:len(out)-1], member...), value...), '}')
}
