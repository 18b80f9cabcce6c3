package bus_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// starter stands for an engine: it takes requests for flows that it knows and
// keeps watermarks. The fields before mu are set before it is used.
type starter struct {
	submit func(run.Request) error // refuses a request; may block
	wait   func(context.Context, run.ID) (*run.Record, error)

	mu         sync.Mutex
	requests   []run.Request // accepted
	tried      int
	batches    []int // how many requests each had
	watermarks map[string]run.Position
}

func (s *starter) Submit(_ context.Context, r run.Request) (run.Receipt, error) {
	s.mu.Lock()
	s.tried++
	s.mu.Unlock()
	if s.submit != nil {
		if err := s.submit(r); err != nil {
			return run.Receipt{}, err
		}
	}
	if !json.Valid(r.Trigger.Payload) {
		return run.Receipt{}, run.Requestf(run.RequestPayload, "the message is not JSON")
	}
	if r.Flow == "unknown" {
		return run.Receipt{}, run.Requestf(run.RequestUnknownFlow, "no flow is named %q", r.Flow)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := r.Position; p.Source != "" {
		if !p.After(s.watermarks[p.Source]) {
			return run.Receipt{}, nil
		}
		s.decide(p)
	}
	if string(r.Trigger.Payload) == `"filtered"` {
		return run.Receipt{}, nil
	}
	if r.Key != "" && slices.ContainsFunc(s.requests, func(a run.Request) bool { return a.Key == r.Key && a.Flow == r.Flow }) {
		return run.Receipt{Run: runID, Accepted: true, Repeated: true}, nil
	}
	s.requests = append(s.requests, r)
	return run.Receipt{Run: runID, Accepted: true}, nil
}

func (s *starter) SubmitBatch(ctx context.Context, requests []run.Request) (int, error) {
	s.mu.Lock()
	s.batches = append(s.batches, len(requests))
	s.mu.Unlock()
	for i, r := range requests {
		if _, err := s.Submit(ctx, r); err != nil {
			return i, err
		}
	}
	return len(requests), nil
}

func (s *starter) decide(p run.Position) {
	if s.watermarks == nil {
		s.watermarks = map[string]run.Position{}
	}
	if p.After(s.watermarks[p.Source]) {
		s.watermarks[p.Source] = p
	}
}

func (s *starter) Decide(_ context.Context, p run.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide(p)
	return nil
}

func (s *starter) Wait(ctx context.Context, id run.ID) (*run.Record, error) {
	if s.wait != nil {
		return s.wait(ctx, id)
	}
	return &run.Record{Run: id, Flow: "orders", State: run.Succeeded, Output: json.RawMessage(`"<ok>"`)}, nil
}

func (s *starter) Watermark(_ context.Context, source string) (run.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watermarks[source], nil
}

func (s *starter) accepted() []run.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]run.Request(nil), s.requests...)
}

func (s *starter) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

// payloads waits for n accepted requests and gives their payloads.
func (s *starter) payloads(t *testing.T, n int) []string {
	t.Helper()
	eventually(t, "requests are accepted", func() bool { return len(s.accepted()) >= n })
	var all []string
	for _, r := range s.accepted() {
		all = append(all, string(r.Trigger.Payload))
	}
	return all
}

// runIntake starts an intake and waits until it listens. The returned function
// stops it softly and waits for its end; the end of the test does so too.
func runIntake(t *testing.T, nc *nats.Conn, s bus.Starter, triggers []bus.Subscription, cfg bus.IntakeConfig) (stop func()) {
	t.Helper()
	_, stop = newIntake(t, nc, s, triggers, cfg)
	return stop
}

// newIntake is runIntake that gives the intake, too.
func newIntake(t *testing.T, nc *nats.Conn, s bus.Starter, triggers []bus.Subscription, cfg bus.IntakeConfig) (in *bus.Intake, stop func()) {
	t.Helper()
	in, err := bus.NewIntake(nc, s, triggers, cfg)
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
			case <-time.After(patience):
				t.Error("Run does not end")
			}
		})
	}
	t.Cleanup(stop)
	select {
	case <-in.Ready():
	case <-time.After(patience):
		t.Fatal("the intake does not listen")
	}
	return in, stop
}

// request sends a request and gives the answer with its error code.
func request(t *testing.T, nc *nats.Conn, subject, body string, header nats.Header) (answer, code string) {
	t.Helper()
	msg, err := nc.RequestMsg(&nats.Msg{Subject: subject, Data: []byte(body), Header: header}, patience)
	if err != nil {
		t.Fatalf("request on %s: %v", subject, err)
	}
	return string(msg.Data), msg.Header.Get("Nats-Service-Error-Code")
}
