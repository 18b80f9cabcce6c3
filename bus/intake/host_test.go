package intake_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// switches records what it is asked for.
type switches struct {
	status  api.HostStatus
	drained chan api.Requester
}

func (s *switches) HostStatus() api.HostStatus { return s.status }

func (s *switches) PauseHost(_ context.Context, reason string) (run.Pause, bool, error) {
	began := s.status.Pause == nil
	if began {
		s.status.Pause = &run.Pause{Reason: reason, At: s.status.Started.Add(time.Hour)}
	}
	return *s.status.Pause, began, nil
}

func (s *switches) ResumeHost(context.Context) (*run.Pause, error) {
	ended := s.status.Pause
	s.status.Pause = nil
	return ended, nil
}

func (s *switches) Drain(by api.Requester) { s.drained <- by }

// The operator pauses, resumes and drains the host; clients see its state only.
func TestHostControl(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	nc := bustest.Connect(t, server)
	s := &switches{
		status:  api.HostStatus{Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Workers: 3, InFlight: 512},
		drained: make(chan api.Requester, 1),
	}
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{Host: s, Operator: natsd.AccountOperator})
	dial := func(context string) *api.Client {
		client, err := api.Dial(t.Context(), api.DialConfig{Context: dir + "/" + context})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	client, operator := dial(natsd.ClientContext), dial(natsd.OperatorContext)
	want := s.status
	if got, err := client.Status(t.Context()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("state: %+v, %v", got, err)
	}
	for name, request := range map[string]func() error{
		"pause":  func() error { _, err := client.PauseHost(t.Context(), "why"); return err },
		"resume": func() error { _, err := client.ResumeHost(t.Context()); return err },
		"drain":  func() error { _, err := client.Drain(t.Context()); return err },
	} {
		if err := request(); codeOf(err) != api.CodeDenied {
			t.Errorf("%s by a client: %v", name, err)
		}
	}
	// Also where the server lets clients publish there.
	for verb, body := range map[string]string{api.VerbPauseHost: `{"reason":"why"}`, api.VerbResumeHost: "", api.VerbDrain: ""} {
		header := nats.Header{"Nats-Request-Info": {`{"acc":"CLIENT","id":7}`}}
		if answer, code := bustest.Request(t, nc, bus.APISubject(verb), body, header); code != api.CodeDenied {
			t.Errorf("%s: %s", verb, answer)
		}
	}

	if _, err := operator.PauseHost(t.Context(), " "); codeOf(err) != run.RequestParams {
		t.Errorf("without a reason: %v", err)
	}
	pause := run.Pause{Reason: "why", At: want.Started.Add(time.Hour)}
	for _, began := range []bool{true, false} {
		if got, err := operator.PauseHost(t.Context(), "why"); err != nil || !cmp.Equal(got, api.PausedHost{Pause: pause, Began: began}) {
			t.Errorf("pause: %+v, %v", got, err)
		}
	}
	if got, err := client.Status(t.Context()); err != nil || got.Pause == nil || *got.Pause != pause {
		t.Errorf("state: %+v, %v", got, err)
	}
	for _, ended := range []*run.Pause{&pause, nil} {
		if got, err := operator.ResumeHost(t.Context()); err != nil || !cmp.Equal(got, ended) {
			t.Errorf("resume: %+v, %v", got, err)
		}
	}
	if got, err := operator.Drain(t.Context()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("drain: %+v, %v", got, err)
	}
	if by := <-s.drained; by.Account != natsd.AccountOperator {
		t.Errorf("drained by %+v", by)
	}
}
