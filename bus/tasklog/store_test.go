package tasklog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/run"
)

// Lines of an attempt share messages, which are neither many nor large.
func TestLogsAreBatched(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	l := openLogs(t, nc, tasklog.Config{Delay: time.Hour})
	const lines = 2000
	for i := range lines {
		l.Write(callOf(bustest.RunID, "price", 1+i%2), time.Now(), info("line %d", i))
	}
	storeLogs(t, l)
	flush(t, l)
	all := bustest.Messages(t, nc, bus.StreamLogs)
	if len(all) < 2 || len(all) > 12 {
		t.Errorf("%d messages", len(all))
	}
	for _, m := range all {
		if len(m.Data) > 40<<10 || m.Subject != "fh.v1.log.orders.V" || m.Header.Get(bus.HeaderRun) != string(bustest.RunID) || m.Header.Get(bus.HeaderTask) != "price" {
			t.Errorf("%s with %d bytes, %v", m.Subject, len(m.Data), m.Header)
		}
	}
	for attempt := range 2 {
		got := readLogs(t, l, recordOf(callOf(bustest.RunID, "price", 1)), run.LogQuery{Attempt: attempt + 1})
		for i, e := range got {
			if want := fmt.Sprintf("line %d", 2*i+attempt); e.Message != want {
				t.Fatalf("attempt %d: %q where %q is next", attempt+1, e.Message, want)
			}
		}
		if len(got) != lines/2 {
			t.Errorf("attempt %d: %d lines", attempt+1, len(got))
		}
	}
}

// A message goes out when it is full or old, whatever else waits.
func TestLogsGoOutByThemselves(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	full := startLogs(t, nc, tasklog.Config{Delay: time.Hour})
	full.Write(callOf(bustest.RunID, "waits", 1), time.Now(), info("alone"))
	full.Write(callOf(bustest.RunID, "fills", 1), time.Now(), info("%s", strings.Repeat("x", 40<<10)))
	old := startLogs(t, nc, tasklog.Config{Delay: time.Millisecond})
	old.Write(callOf(bustest.RunID, "delayed", 1), time.Now(), info("old"))
	var tasks []string
	bustest.Eventually(t, "two messages are stored", func() bool {
		tasks = nil
		for _, m := range bustest.Messages(t, nc, bus.StreamLogs) {
			tasks = append(tasks, m.Header.Get(bus.HeaderTask))
		}
		return len(tasks) == 2
	})
	slices.Sort(tasks)
	if !slices.Equal(tasks, []string{"delayed", "fills"}) {
		t.Errorf("stored are lines of %v", tasks)
	}
}

// A full buffer costs lines, never time, and the log says where and how many.
func TestLogsDropWhatTheyCannotHold(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	var operator bustest.LogLines
	l := openLogs(t, nc, tasklog.Config{Buffer: 64 << 10, Log: operator.Logger()})
	a, b := callOf(bustest.RunID, "price", 1), callOf(bustest.RunID, "notify", 1)
	written := 0
	for range 5000 { // the first fills the buffer, the second comes too late
		l.Write(a, time.Now(), info("line %d", written))
		written++
	}
	l.Write(b, time.Now(), info("too late"))
	storeLogs(t, l)
	flush(t, l)
	l.Write(a, time.Now(), info("line %d", written))
	flush(t, l)

	next, gaps := 0, 0
	for _, e := range readLogs(t, l, recordOf(a), run.LogQuery{Task: "price"}) {
		if e.Level == "warn" {
			var fields struct{ Lines int }
			if err := json.Unmarshal(e.Fields, &fields); err != nil {
				t.Fatal(err)
			}
			gaps, next = gaps+1, next+fields.Lines
			continue
		}
		if want := fmt.Sprintf("line %d", next); e.Message != want {
			t.Fatalf("%q where %q is next", e.Message, want)
		}
		next++
	}
	if next != written+1 || gaps != 1 {
		t.Errorf("the log knows of %d lines with %d gaps, %d were written", next, gaps, written+1)
	}
	got := readLogs(t, l, recordOf(b), run.LogQuery{Task: "notify"})
	if len(got) != 1 || string(got[0].Fields) != `{"lines":1}` {
		t.Errorf("the log of the one that came too late: %+v", got)
	}
	bustest.Eventually(t, "the operator is told", func() bool { return operator.Count("were dropped") == 1 })
}

func TestLogsOfAnItem(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	l := openLogs(t, nc, tasklog.Config{})
	for _, key := range []string{"eu", "us", ""} {
		call := callOf(bustest.RunID, "copy", 1)
		call.Key = key
		l.Write(call, time.Now(), info("of %q", key))
	}
	storeLogs(t, l)
	flush(t, l)
	of := recordOf(callOf(bustest.RunID, "", 0))
	if got := texts(readLogs(t, l, of, run.LogQuery{Task: "copy", Key: "us"})); !slices.Equal(got, []string{`of "us"`}) {
		t.Errorf("of one item: %q", got)
	}
	if got := readLogs(t, l, of, run.LogQuery{Task: "copy"}); len(got) != 3 {
		t.Errorf("of the task: %v", got)
	}
}

// Even the notes of what was dropped are bounded.
func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	l := openLogs(t, nc, tasklog.Config{Buffer: 16 << 10})
	const attempts = 10_000
	for i := range attempts {
		l.Write(callOf(bustest.RunID, "price", i+1), time.Now(), info("line"))
	}
	storeLogs(t, l)
	flush(t, l)
	if got := len(bustest.Messages(t, nc, bus.StreamLogs)); got == 0 || got > 40 {
		t.Errorf("%d messages of a buffer of 16 KiB", got)
	}
	// All of it is free again.
	for i := range 20 {
		l.Write(callOf(bustest.RunID, "later", i+1), time.Now(), info("line"))
	}
	flush(t, l)
	if got := readLogs(t, l, recordOf(callOf(bustest.RunID, "", 0)), run.LogQuery{Task: "later", Level: "info"}); len(got) != 20 || got[19].Level != "info" {
		t.Errorf("%d lines: %+v", len(got), got)
	}
}

func TestLogsIgnoreCallsOfNoRun(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	l := startLogs(t, nc, tasklog.Config{})
	bad := callOf(bustest.RunID, "price", 1)
	bad.Flow = "a.>"
	for _, call := range []*run.Call{{Flow: "orders"}, callOf("x", "price", 1), bad} {
		l.Write(call, time.Now(), info("lost"))
	}
	flush(t, l)
	if got := bustest.Messages(t, nc, bus.StreamLogs); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
	if err := l.Read(t.Context(), recordOf(bad), run.LogQuery{}, "", false, nil); err == nil {
		t.Error("a flow that is no token can be read")
	}
}

// Lines wait for a server that is away, and come once and in order.
func TestLogsOverRestarts(t *testing.T) {
	t.Parallel()
	x := bustest.NewExternal(t)
	x.Start()
	var log bustest.LogLines
	nc := x.Connect(&log, x.Address())
	if err := bus.Provision(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	l := startLogs(t, nc, tasklog.Config{Delay: time.Millisecond, Timeout: 200 * time.Millisecond, Log: log.Logger()})
	call := callOf(bustest.RunID, "price", 1)
	const each = 5000
	for round := range 3 {
		var guest sync.WaitGroup
		guest.Go(func() {
			for i := range each {
				l.Write(call, time.Now(), info("line %d", round*each+i))
			}
		})
		x.Stop()
		guest.Wait() // without a server
		x.Start()
	}
	flush(t, l)
	if diff := cmp.Diff(numbered(0, 3*each), texts(readLogs(t, l, recordOf(call), run.LogQuery{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The server's answers get lost on the way while the lines are stored.
func TestLogsLostAnswers(t *testing.T) {
	t.Parallel()
	x := bustest.NewExternal(t)
	x.Start()
	relay := bustest.NewRelay(t, x.Address())
	var log bustest.LogLines
	direct := x.Connect(&log, x.Address())
	if err := bus.Provision(t.Context(), direct, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	l := startLogs(t, x.Connect(&log, relay.Address()), tasklog.Config{Timeout: 100 * time.Millisecond, Log: log.Logger()})
	relay.Mute.Store(true)
	for i := range 10 {
		l.Write(callOf(bustest.RunID, "price", 1), time.Now(), info("line %d", i))
	}
	bustest.Eventually(t, "the wait is told", func() bool { return log.Count("waiting to store the logs") > 0 })
	relay.Mute.Store(false)
	flush(t, l)
	got := readLogs(t, openLogs(t, direct, tasklog.Config{}), recordOf(callOf(bustest.RunID, "price", 1)), run.LogQuery{})
	if !slices.Equal(texts(got), numbered(0, 10)) {
		t.Errorf("%q", texts(got))
	}
}
