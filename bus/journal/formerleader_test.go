package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/run"
)

// leaders answers as the leaders of a journal's stream do, and counts the appends: so
// many of them are answered by one that leads no more and lacks the last commit.
func leaders(t *testing.T, nc *nats.Conn, replicas int, former int64) *atomic.Int64 {
	t.Helper()
	appends := new(atomic.Int64)
	answer := func(m *nats.Msg, format string, args ...any) {
		if err := m.Respond(fmt.Appendf(nil, format, args...)); err != nil {
			t.Error(err)
		}
	}
	handlers := map[string]nats.MsgHandler{
		"$JS.API.STREAM.INFO." + bus.StreamJournal: func(m *nats.Msg) {
			answer(m, `{"config":{"name":%q,"num_replicas":%d},"state":{}}`, bus.StreamJournal, replicas)
		},
		bus.JournalSubject(0): func(m *nats.Msg) {
			if appends.Add(1) > former {
				answer(m, `{"stream":%q,"seq":8}`, bus.StreamJournal)
				return
			}
			answer(m, `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 6"},"stream":%q,"seq":0}`, bus.StreamJournal)
		},
		"$JS.API.STREAM.MSG.GET." + bus.StreamJournal: func(m *nats.Msg) {
			var asked struct {
				Last string `json:"last_by_subj"`
			}
			if json.Unmarshal(m.Data, &asked) == nil && asked.Last != "" {
				answer(m, `{"message":{"subject":%q,"seq":6,"time":"2026-01-01T00:00:00Z"}}`, asked.Last)
				return
			}
			answer(m, `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
		},
	}
	for subject, handle := range handlers {
		if _, err := nc.Subscribe(subject, handle); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return appends
}

// A server that was paused answers as the leader that it was, with less of the
// journal than was acknowledged since. The append waits for the one that leads now.
func TestAppendDoubtsAFormerLeader(t *testing.T) {
	t.Parallel()
	const always = 1 << 40
	for name, c := range map[string]struct {
		replicas int
		former   int64
		fenced   bool
		once     bool // one attempt is enough
	}{
		"for a while":      {replicas: 3, former: 2},
		"always":           {replicas: 3, former: always, fenced: true},
		"the only server":  {replicas: 1, former: always, fenced: true, once: true},
		"none is a former": {replicas: 3, once: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := bustest.NewExternal(t)
			e.Opts.JetStream = false
			e.Start()
			var log bustest.LogLines
			appends := leaders(t, e.Connect(&log, e.Address()), c.replicas, c.former)
			j := bustest.OpenJournal(t, e.Connect(&log, e.Address()), journal.Config{Timeout: time.Second, Log: log.Logger()})
			revision, err := j.Append(t.Context(), 7, []byte("commit"))
			if errors.Is(err, run.ErrFenced) != c.fenced || !c.fenced && (err != nil || revision != 8) {
				t.Errorf("Append = %d, %v", revision, err)
			}
			if n := appends.Load(); c.once != (n == 1) {
				t.Errorf("%d appends", n)
			}
		})
	}
}
