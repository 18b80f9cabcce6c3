package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Record is a run as the host publishes it.
type Record struct {
	Run     string          `json:"run"`
	Flow    string          `json:"flow"`
	State   string          `json:"state"`
	Output  json.RawMessage `json:"output"`
	Trigger struct {
		Kind    string    `json:"kind"`
		Time    time.Time `json:"time"`
		Payload struct {
			Marker string `json:"marker"`
			N      int    `json:"n"`
		} `json:"payload"`
	} `json:"trigger"`
	Error *struct {
		Outcome string `json:"outcome"`
		Message string `json:"message"`
	} `json:"error"`
	Tasks []TaskRecord `json:"tasks"`
}

// TaskRecord is a task run of a [Record].
type TaskRecord struct {
	Task     string `json:"task"`
	State    string `json:"state"`
	Outcome  string `json:"outcome"`
	Attempts int    `json:"attempts"`
}

// event is one of the stream FH_EVENTS.
type event struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Flow      string          `json:"flow"`
	Run       string          `json:"run"`
	Task      string          `json:"task"`
	Key       string          `json:"key"`
	Attempt   int             `json:"attempt"`
	State     string          `json:"state"`
	Record    json.RawMessage `json:"record"`
	Truncated bool            `json:"truncated"`
}

// End is the end of a run, as a stream tells it.
type End struct {
	Record
	Text json.RawMessage // of the record
}

// Archive is what the host has published of all runs: the content of the stream
// FH_EVENTS, and of FH_HISTORY where there is one.
type Archive struct {
	Ends    []End
	History []End // nil without FH_HISTORY
	Events  int

	Open   map[string]bool // runs whose beginning was told, and no end
	broken []Finding       // promises that the order of the events alone broke
	places map[string]place
	runs   map[string]*story
}

type place struct{ revision, index int }

// story is what the events have told of a run so far.
type story struct {
	submitted, finished bool
	started, ended      map[string]int // attempts by task and key
}

// ReadArchive reads until the events tell of the end of every run that they tell
// of, and of every accepted one of the ledger, or until nothing but schedules
// happens any more; [Check] finds what is missing then. The connection must be
// allowed to read both streams.
func ReadArchive(ctx context.Context, nc *nats.Conn, l *Ledger) (*Archive, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	a := &Archive{Open: map[string]bool{}, places: map[string]place{}, runs: map[string]*story{}}
	if err := a.readEvents(ctx, js, l); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // it holds no more than is there
	defer cancel()
	err = read(ctx, js, "FH_HISTORY", "fh.v1.history.>", func(data []byte, last bool) (bool, error) {
		end, err := newEnd(data)
		a.History = append(a.History, end)
		return last, err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil
	}
	return a, err
}

// quiet is how long nothing may happen before nothing more is expected to.
const quiet = 15 * time.Second

var errQuiet = errors.New("nothing happens any more")

func (a *Archive) readEvents(ctx context.Context, js jetstream.JetStream, l *Ledger) error {
	runs, markers := map[string]bool{}, map[string]bool{} // accepted, and not finished
	for _, e := range l.Entries() {
		switch {
		case e.Fate != Accepted:
		case e.Run != "":
			runs[e.Run] = true
		default:
			markers[e.Marker] = true
		}
	}
	complete := func() bool { return len(runs) == 0 && len(markers) == 0 && len(a.Open) == 0 }
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(quiet, func() { cancel(errQuiet) })
	defer idle.Stop()
	err := read(ctx, js, "FH_EVENTS", "fh.v1.run.>", func(data []byte, last bool) (bool, error) {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return false, err
		}
		if err := a.tell(e); err != nil {
			return false, err
		}
		if e.Flow != "clock" {
			idle.Reset(quiet)
		}
		if e.Kind == "finished" {
			delete(runs, e.Run)
			delete(markers, a.Ends[len(a.Ends)-1].Trigger.Payload.Marker)
		}
		return last && complete(), nil
	})
	if context.Cause(ctx) == errQuiet {
		return nil // what is missing is for Check to say
	}
	return err
}

// tell adds an event.
func (a *Archive) tell(e event) error {
	a.Events++
	var shard int
	var at place
	if n, err := fmt.Sscanf(e.ID, "%d-%d-%d", &shard, &at.revision, &at.index); n != 3 {
		return fmt.Errorf("id %q of an event: %w", e.ID, err)
	}
	key := fmt.Sprint(shard)
	if before := a.places[key]; at.revision < before.revision || at.revision == before.revision && at.index <= before.index && before != (place{}) {
		a.broke(RuleOrder, e.Run, "event %s comes after revision %d, index %d", e.ID, before.revision, before.index)
	}
	a.places[key] = at
	s := a.runs[e.Run]
	if s == nil {
		s = &story{started: map[string]int{}, ended: map[string]int{}}
		a.runs[e.Run] = s
	}
	task := e.Task + "/" + e.Key
	switch {
	case s.finished:
		a.broke(RuleOrder, e.Run, "event %s, %s, comes after the run's end", e.ID, e.Kind)
	case e.Kind == "submitted" == s.submitted:
		a.broke(RuleOrder, e.Run, "event %s, %s: a run begins with one event submitted", e.ID, e.Kind)
	case e.Kind == "attempt_started" && e.Attempt != s.started[task]+1,
		e.Kind == "attempt_finished" && (e.Attempt != s.started[task] || e.Attempt != s.ended[task]+1):
		a.broke(RuleOrder, e.Run, "event %s, %s %d of %s: %d have begun, %d have ended", e.ID, e.Kind, e.Attempt, e.Task, s.started[task], s.ended[task])
	}
	return a.note(s, e, task)
}

// note brings a run's story up to date.
func (a *Archive) note(s *story, e event, task string) error {
	switch e.Kind {
	case "submitted":
		s.submitted = true
		a.Open[e.Run] = true
	case "attempt_started":
		s.started[task] = e.Attempt
	case "attempt_finished":
		s.ended[task] = e.Attempt
	case "finished":
		s.finished = true
		delete(a.Open, e.Run)
		end, err := newEnd(e.Record)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
		a.Ends = append(a.Ends, end)
	}
	return nil
}

func (a *Archive) broke(rule Rule, run, format string, args ...any) {
	a.broken = append(a.broken, Finding{Rule: rule, Run: run, What: fmt.Sprintf(format, args...)})
}

func newEnd(text []byte) (End, error) {
	e := End{Text: text}
	if err := json.Unmarshal(text, &e.Record); err != nil {
		return e, fmt.Errorf("%w in record %.200q", err, text)
	}
	return e, nil
}

// read gives the messages of a stream on the subject, in order, until f says that it has seen
// enough. last is true for a message that has none after it.
func read(ctx context.Context, js jetstream.JetStream, name, subject string, f func(data []byte, last bool) (bool, error)) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	if state := stream.CachedInfo().State; name == "FH_EVENTS" && state.FirstSeq > 1 {
		return fmt.Errorf("stream %s begins with message %d: it has dropped events, give it less to hold", name, state.FirstSeq)
	} else if state.Msgs == 0 && name != "FH_EVENTS" {
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
		at, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
		enough, err := f(msg.Data(), at.NumPending == 0)
		if err != nil {
			return fmt.Errorf("message %d of stream %s, %q with headers %v: %w", at.Sequence.Stream, name, msg.Subject(), msg.Headers(), err)
		}
		if enough {
			return nil
		}
	}
}
