package bustest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/run"
)

// Starter stands for an engine: it takes requests for flows that it knows and
// keeps watermarks. The fields before mu are set before it is used.
type Starter struct {
	OnSubmit func(run.Request) error // refuses a request; may block
	OnWait   func(context.Context, run.ID) (*run.Record, error)
	OnSync   func() error

	Mu         sync.Mutex
	requests   []run.Request // accepted
	tried      int
	Batches    []int // how many requests each had
	Watermarks map[string]run.Position
}

func (s *Starter) Submit(_ context.Context, r run.Request) (run.Receipt, error) {
	s.Mu.Lock()
	s.tried++
	s.Mu.Unlock()
	if s.OnSubmit != nil {
		if err := s.OnSubmit(r); err != nil {
			return run.Receipt{}, err
		}
	}
	if !json.Valid(r.Trigger.Payload) {
		return run.Receipt{}, run.Requestf(run.RequestPayload, "the message is not JSON")
	}
	if r.Flow == "unknown" {
		return run.Receipt{}, run.Requestf(run.RequestUnknownFlow, "no flow is named %q", r.Flow)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if p := r.Position; p.Source != "" {
		if !p.After(s.Watermarks[p.Source]) {
			return run.Receipt{}, nil
		}
		s.decide(p)
	}
	if string(r.Trigger.Payload) == `"filtered"` {
		return run.Receipt{}, nil
	}
	if r.Key != "" && slices.ContainsFunc(s.requests, func(a run.Request) bool { return a.Key == r.Key && a.Flow == r.Flow }) {
		return run.Receipt{Run: RunID, Accepted: true, Repeated: true}, nil
	}
	s.requests = append(s.requests, r)
	return run.Receipt{Run: RunID, Accepted: true}, nil
}

func (s *Starter) Begin(ctx context.Context, r run.Request) (run.Receipt, error) {
	return s.Submit(ctx, r)
}

func (s *Starter) Sync(ctx context.Context) error {
	if s.OnSync != nil {
		return s.OnSync()
	}
	return ctx.Err()
}

func (s *Starter) SubmitBatch(ctx context.Context, requests []run.Request) (int, error) {
	s.Mu.Lock()
	s.Batches = append(s.Batches, len(requests))
	s.Mu.Unlock()
	for i, r := range requests {
		if _, err := s.Submit(ctx, r); err != nil {
			return i, err
		}
	}
	return len(requests), nil
}

func (s *Starter) decide(p run.Position) {
	if s.Watermarks == nil {
		s.Watermarks = map[string]run.Position{}
	}
	if p.After(s.Watermarks[p.Source]) {
		s.Watermarks[p.Source] = p
	}
}

func (s *Starter) Decide(_ context.Context, p run.Position) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.decide(p)
	return nil
}

func (s *Starter) Wait(ctx context.Context, id run.ID) (*run.Record, error) {
	if s.OnWait != nil {
		return s.OnWait(ctx, id)
	}
	return &run.Record{Run: id, Flow: "orders", State: run.Succeeded, Output: json.RawMessage(`"<ok>"`)}, nil
}

func (s *Starter) Watermark(_ context.Context, source string) (run.Position, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Watermarks[source], nil
}

func (s *Starter) Accepted() []run.Request {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return append([]run.Request(nil), s.requests...)
}

func (s *Starter) Attempts() int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.tried
}

// Payloads waits for n accepted requests and gives their payloads.
func (s *Starter) Payloads(t *testing.T, n int) []string {
	t.Helper()
	Eventually(t, "requests are accepted", func() bool { return len(s.Accepted()) >= n })
	var all []string
	for _, r := range s.Accepted() {
		all = append(all, string(r.Trigger.Payload))
	}
	return all
}

// RunIntake starts an intake and waits until it listens. The returned function
// stops it softly and waits for its end; the end of the test does so too.
func RunIntake(t *testing.T, nc *nats.Conn, s intake.Starter, triggers []intake.Subscription, cfg intake.Config) (stop func()) {
	t.Helper()
	_, stop = NewIntake(t, nc, s, triggers, cfg)
	return stop
}

// NewIntake is runIntake that gives the intake, too.
func NewIntake(t *testing.T, nc *nats.Conn, s intake.Starter, triggers []intake.Subscription, cfg intake.Config) (in *intake.Intake, stop func()) {
	t.Helper()
	in, err := intake.New(nc, s, triggers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("Run = %v", err)
				}
			case <-time.After(Patience):
				t.Error("Run does not end")
			}
		})
	}
	t.Cleanup(stop)
	select {
	case <-in.Ready():
	case <-time.After(Patience):
		t.Fatal("the intake does not listen")
	}
	return in, stop
}

// Request sends a request and gives the answer with its error code.
func Request(t *testing.T, nc *nats.Conn, subject, body string, header nats.Header) (answer, code string) {
	t.Helper()
	msg, err := nc.RequestMsg(&nats.Msg{Subject: subject, Data: []byte(body), Header: header}, Patience)
	if err != nil {
		t.Fatalf("request on %s: %v", subject, err)
	}
	return string(msg.Data), msg.Header.Get("Nats-Service-Error-Code")
}
