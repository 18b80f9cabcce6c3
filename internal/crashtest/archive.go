package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Record is the record of a run as the host publishes it.
type Record struct {
	Run      string          `json:"run"`
	Flow     string          `json:"flow"`
	State    string          `json:"state"`
	Output   json.RawMessage `json:"output"`
	Finished time.Time       `json:"finished_at"`
	Trigger  struct {
		Kind    string    `json:"kind"`
		Time    time.Time `json:"time"`
		Payload struct {
			Marker string `json:"marker"`
			N      int    `json:"n"`

			Run    string `json:"run"` // of a run that a flow trigger started: the run before
			Output struct {
				N int `json:"n"`
			} `json:"output"`
		} `json:"payload"`
	} `json:"trigger"`
	Params struct {
		N int `json:"n"`
	} `json:"params"`
	Parent struct {
		Run string `json:"run"`
	} `json:"parent"` // of the run of a sub-flow
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

// End is the end of a run as the host publishes it.
type End struct {
	Record
	Text json.RawMessage // of the record

	place place     // in the journal; of an event only
	at    time.Time // when it happened; of an event only
}

// Archive is what the host published about all runs: the events that a follower
// received, and the content of the stream FH_HISTORY if there is one.
type Archive struct {
	Ends    []End
	History []End // nil without FH_HISTORY
	Events  int

	Open   map[string]bool // runs with a first event and no end
	Resets int             // how often events were missing

	broken []Finding      // promises broken by the order of the events alone
	first  *place         // of the first event since the last reset
	last   map[int]place  // by shard: of the last event
	before map[string]End // ends from before a reset that have not come again
	runs   map[string]*runProgress
}

func newArchive() *Archive {
	return &Archive{Open: map[string]bool{}, last: map[int]place{}, before: map[string]End{}, runs: map[string]*runProgress{}}
}

// ReadArchive reads until every run of the events and every accepted entry of the
// ledger has ended, or until only schedules fire; then [Check] finds what is missing.
// The connection must be allowed to send requests. [Archive.readHistory] reads the
// history.
func ReadArchive(ctx context.Context, nc *nats.Conn, l *Load) (*Archive, error) {
	a := newArchive()
	if err := a.readEvents(ctx, nc, l); err != nil {
		return nil, err
	}
	return a, nil
}

// readHistory reads the records of finished runs.
func (a *Archive) readHistory(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // the stream does not grow any more
	defer cancel()
	err = read(ctx, js, "FH_HISTORY", "fh.v1.history.>", func(data []byte, last bool) (bool, error) {
		end, err := newEnd(data)
		a.keep(end)
		return last, err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil
	}
	return err
}

// quiet is how long ReadArchive waits for a further event.
const quiet = 15 * time.Second

var errQuiet = errors.New("nothing happens any more")

func (a *Archive) readEvents(ctx context.Context, nc *nats.Conn, l *Load) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(quiet, func() { cancel(errQuiet) })
	defer idle.Stop()
	for over := false; !over; {
		p, err := l.Follower.next(ctx, nc)
		if context.Cause(ctx) == errQuiet {
			break // Check reports what is missing
		}
		if err != nil {
			return err
		}
		busy, err := a.add(p)
		if err != nil {
			return err
		}
		if busy {
			idle.Reset(quiet)
		}
		over = len(p.Events) < followLimit/2 && len(a.Open) == 0 && len(a.awaited(l.Ledger)) == 0
	}
	a.takeBack()
	return nil
}

// add adds a page of events. It reports whether it contains more than schedules.
func (a *Archive) add(p page) (busy bool, err error) {
	if p.Reset {
		a.restart()
	}
	for _, data := range p.Events {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return busy, err
		}
		if err := a.addEvent(e); err != nil {
			return busy, fmt.Errorf("event %.300s: %w", data, err)
		}
		busy = busy || e.Flow != "clock"
	}
	return busy, nil
}

// awaited are runs that have not ended, or markers where no run is known.
type awaited map[string]bool

// awaited are those of accepted entries.
func (a *Archive) awaited(l *Ledger) awaited {
	open := awaited{}
	for _, e := range l.Entries() {
		switch {
		case e.Fate != Accepted:
		case e.Run != "":
			open[e.Run] = true
		default:
			open[e.Marker] = true
		}
	}
	for _, end := range slices.Concat(a.Ends, slices.Collect(maps.Values(a.before))) {
		open.end(end)
	}
	return open
}

func (a awaited) end(end End) {
	delete(a, end.Run)
	delete(a, end.Trigger.Payload.Marker)
	delete(a, afterRun+end.Trigger.Payload.Run)
	if end.followed() {
		a[afterRun+end.Run] = true
	}
}

// afterRun is the prefix of the id of a run that must start another one.
const afterRun = "after "

// followed reports whether a run starts when this one has ended.
func (e *End) followed() bool { return e.Flow == "flaky" && e.State == "succeeded" }

// keep adds a record of the history. If the journal lost a run's first end, the run
// ends again and the later record counts.
func (a *Archive) keep(end End) {
	i := slices.IndexFunc(a.History, func(h End) bool { return h.Run == end.Run && !h.Finished.Equal(end.Finished) })
	if i < 0 {
		a.History = append(a.History, end)
		return
	}
	a.broken = append(a.broken, Finding{
		Rule: RuleHistory, Run: end.Run, Answered: a.History[i].Finished, What: "the journal has lost the end, and the run has ended again",
	})
	a.History[i] = end
}

func newEnd(text []byte) (End, error) {
	e := End{Text: text}
	if err := json.Unmarshal(text, &e.Record); err != nil {
		return e, fmt.Errorf("%w in record %.200q", err, text)
	}
	return e, nil
}

// read passes the messages of a stream on the subject to f, in order, until f returns
// true. last is true for the last message of the stream.
func read(ctx context.Context, js jetstream.JetStream, name, subject string, f func(data []byte, last bool) (bool, error)) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	if stream.CachedInfo().State.Msgs == 0 {
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
