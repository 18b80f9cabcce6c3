package tasklog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/run"
)

var _ intake.LogReader = (*tasklog.Store)(nil)

// openLogs gives logs that nobody stores yet.
func openLogs(t testing.TB, nc *nats.Conn, cfg tasklog.Config) *tasklog.Store {
	t.Helper()
	l, err := tasklog.New(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// storeLogs stores lines until the test ends.
func storeLogs(t testing.TB, l *tasklog.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

func startLogs(t testing.TB, nc *nats.Conn, cfg tasklog.Config) *tasklog.Store {
	t.Helper()
	l := openLogs(t, nc, cfg)
	storeLogs(t, l)
	return l
}

func flush(t testing.TB, l *tasklog.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	if err := l.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func callOf(id run.ID, task string, attempt int) *run.Call {
	return &run.Call{Run: id, Flow: "orders", Task: task, Attempt: attempt}
}

func info(format string, args ...any) run.LogLine {
	return run.LogLine{Level: "info", Message: fmt.Sprintf(format, args...)}
}

// recordOf is that of a run which goes on.
func recordOf(call *run.Call) *run.Record {
	return &run.Record{Run: call.Run, Flow: call.Flow, State: run.Running, CreatedAt: time.Now().Add(-time.Minute)}
}

func finished(r *run.Record, at time.Time) *run.Record {
	r.State, r.FinishedAt = run.Succeeded, &at
	return r
}

// readLogs reads what is there.
func readLogs(t testing.TB, l *tasklog.Store, of *run.Record, q run.LogQuery) []run.LogEntry {
	t.Helper()
	var all []run.LogEntry
	err := l.Read(t.Context(), of, q, "", false, func(e run.LogEntry, _ string) bool {
		all = append(all, e)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func texts(entries []run.LogEntry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Message)
	}
	return all
}

func numbered(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("line %d", i))
	}
	return all
}

func TestLogsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	l := startLogs(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), tasklog.Config{})
	first, second, other := callOf(bustest.RunID, "price", 1), callOf(bustest.RunID, "price", 2), callOf(bustest.RunID, "notify", 1)
	first.Key = " e<u>\n\xe2\x82\xac "
	at := time.Date(2026, 3, 29, 1, 30, 0, 123456000, time.UTC)
	var want []run.LogEntry
	for i, w := range []struct {
		call *run.Call
		line run.LogLine
	}{
		{first, run.LogLine{Level: "debug", Message: "looked <up> & \u2028 \x00 \"it\"", Fields: json.RawMessage(`{"n":12345678901234567890,"s":"<&>"}`)}},
		{first, run.LogLine{Level: "error", Message: ""}},
		{other, run.LogLine{Level: "info", Message: "told"}},
		{second, run.LogLine{Level: "warn", Message: "again", Fields: json.RawMessage(`{}`)}},
	} {
		at = at.Add(time.Duration(i) * time.Microsecond)
		l.Write(w.call, at, w.line)
		want = append(want, run.LogEntry{
			Run: bustest.RunID, Flow: "orders", Task: w.call.Task, Key: w.call.Key, Attempt: w.call.Attempt, At: at, LogLine: w.line,
		})
	}
	flush(t, l)
	of := recordOf(first)
	for name, tt := range map[string]struct {
		query run.LogQuery
		want  []run.LogEntry
	}{
		"all":          {run.LogQuery{}, want},
		"debug":        {run.LogQuery{Level: "debug"}, want},
		"a task":       {run.LogQuery{Task: "notify"}, want[2:3]},
		"an attempt":   {run.LogQuery{Task: "price", Attempt: 2}, want[3:]},
		"severe":       {run.LogQuery{Level: "warn"}, []run.LogEntry{want[1], want[3]}},
		"another task": {run.LogQuery{Task: "pric"}, nil},
	} {
		if diff := cmp.Diff(tt.want, readLogs(t, l, of, tt.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	unknown := recordOf(callOf("01ARZ3NDEKTSV4RRFFQ69G5FAW", "price", 1))
	if got := readLogs(t, l, unknown, run.LogQuery{}); got != nil {
		t.Errorf("a run without a log has %v", got)
	}
}

func TestLogsAreReadInPages(t *testing.T) {
	t.Parallel()
	l := startLogs(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), tasklog.Config{})
	call := callOf(bustest.RunID, "price", 1)
	const lines = 50
	for i := range lines {
		l.Write(call, time.Now(), info("line %d", i))
		if i%7 == 0 {
			flush(t, l)
		}
	}
	flush(t, l)
	for size := 1; size <= lines+1; size += 6 {
		var got []string
		cursor, page := "", size
		for page == size {
			page = 0
			err := l.Read(t.Context(), recordOf(call), run.LogQuery{}, cursor, false, func(e run.LogEntry, behind string) bool {
				got, cursor = append(got, e.Message), behind
				page++
				return page < size
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, numbered(0, lines)) {
			t.Errorf("pages of %d: %q", size, got)
		}
	}
}

func TestLogsRefuseWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	l := openLogs(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), tasklog.Config{})
	of := recordOf(callOf(bustest.RunID, "price", 1))
	for _, tt := range []struct {
		query run.LogQuery
		after string
	}{
		{run.LogQuery{Level: "loud"}, ""}, {run.LogQuery{}, "1"}, {run.LogQuery{}, "x.1"}, {run.LogQuery{}, "1.-1"}, {run.LogQuery{}, "0.1"},
	} {
		var wrong *run.RequestError
		err := l.Read(t.Context(), of, tt.query, tt.after, false, func(run.LogEntry, string) bool { return true })
		if !errors.As(err, &wrong) {
			t.Errorf("%+v, %q: %v", tt.query, tt.after, err)
		}
	}
}

// What a finished run wrote is found, though its lines may still be waiting.
func TestLogsOfAFinishedRunAreComplete(t *testing.T) {
	t.Parallel()
	l := startLogs(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), tasklog.Config{Delay: time.Hour})
	call := callOf(bustest.RunID, "price", 1)
	l.Write(call, time.Now(), info("last words"))
	if got := readLogs(t, l, recordOf(call), run.LogQuery{}); got != nil {
		t.Errorf("the lines of a run that goes on were hurried: %v", got)
	}
	got := readLogs(t, l, finished(recordOf(call), time.Now()), run.LogQuery{})
	if !slices.Equal(texts(got), []string{"last words"}) {
		t.Errorf("%v", got)
	}
	// What comes long after the end is not looked through.
	if got := readLogs(t, l, finished(recordOf(call), time.Now().Add(-time.Hour)), run.LogQuery{}); got != nil {
		t.Errorf("%v", got)
	}
}

func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	l := startLogs(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), tasklog.Config{Delay: time.Millisecond})
	call := callOf(bustest.RunID, "price", 1)
	l.Write(call, time.Now(), info("line 0"))
	flush(t, l)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	seen := 0
	err := l.Read(ctx, recordOf(call), run.LogQuery{}, "", true, func(e run.LogEntry, _ string) bool {
		if want := fmt.Sprintf("line %d", seen); e.Message != want {
			t.Errorf("%q where %q is next", e.Message, want)
		}
		if seen++; seen == 100 {
			cancel(enough)
			return true
		}
		l.Write(callOf("01ARZ3NDEKTSV4RRFFQ69G5F0V", "price", 1), time.Now(), info("another run's"))
		l.Write(call, time.Now(), info("line %d", seen)) // only now, and there it comes
		return true
	})
	if !errors.Is(err, enough) || seen != 100 {
		t.Errorf("Read = %v, with %d lines", err, seen)
	}
	err = l.Read(t.Context(), recordOf(call), run.LogQuery{}, "", true, func(run.LogEntry, string) bool { return false })
	if err != nil {
		t.Errorf("Read that was told to end = %v", err)
	}
}

// One run's lines are found among very many others', and messages that are not
// lines do no harm.
func TestLogsAmongMany(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	l := startLogs(t, nc, tasklog.Config{})
	const others, lines = 10_000, 100
	manyLogs(t, nc, others/2)
	junk := nats.NewMsg(bus.LogSubject("orders", bustest.RunID))
	junk.Header.Set(bus.HeaderRun, string(bustest.RunID))
	for _, attempt := range []string{"", "one", "1"} {
		junk.Header.Set(bus.HeaderAttempt, attempt)
		junk.Data = []byte(`{"lines":[{"t":"x"}]}`)
		if err := nc.PublishMsg(junk); err != nil {
			t.Fatal(err)
		}
	}
	call := callOf(bustest.RunID, "price", 1)
	for i := range lines {
		l.Write(call, time.Now(), info("line %d", i))
		if i%10 == 9 {
			flush(t, l)
			manyLogs(t, nc, others/20)
		}
	}
	of := recordOf(call)
	if got := readLogs(t, l, of, run.LogQuery{}); !slices.Equal(texts(got), numbered(0, lines)) {
		t.Errorf("%d lines: %q", len(got), texts(got))
	}
	of.CreatedAt = time.Now().Add(time.Hour) // where nothing is
	if got := readLogs(t, l, of, run.LogQuery{}); got != nil {
		t.Errorf("before its beginning, the run has %d lines", len(got))
	}
}

// manyLogs stores messages of other runs, as Logs would.
func manyLogs(t testing.TB, nc *nats.Conn, n int) {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096))
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"lines":[{"t":1767323045025123,"l":"info","m":"counted what there is to count","f":{"words":6,"bytes":18}}]}`)
	for range n {
		id := run.NewID(time.Now())
		m := &nats.Msg{Subject: bus.LogSubject("orders", id), Data: body, Header: nats.Header{
			bus.HeaderRun: {string(id)}, bus.HeaderTask: {"price"}, bus.HeaderAttempt: {"1"},
		}}
		if _, err := js.PublishMsgAsync(m); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-t.Context().Done():
	}
}

func TestLogsStream(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	want := bustest.Limits{Discard: jetstream.DiscardOld, Bytes: 512 << 20, Message: -1, Age: 7 * 24 * time.Hour, Replicas: 1, Window: 15 * time.Second, Subjects: []string{"fh.v1.log.*.*"}}
	if diff := cmp.Diff(want, bustest.StreamLimits(t, nc, bus.StreamLogs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := bus.Provision(t.Context(), nc, bus.StreamConfig{LogBytes: 64 << 10, LogAge: time.Hour}); err != nil {
		t.Fatal(err)
	}
	want.Bytes, want.Age = 64<<10, time.Hour
	if diff := cmp.Diff(want, bustest.StreamLimits(t, nc, bus.StreamLogs)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	// What is over the size is dropped from the beginning.
	l := startLogs(t, nc, tasklog.Config{})
	call := callOf(bustest.RunID, "price", 1)
	const lines = 2000
	for i := range lines {
		l.Write(call, time.Now(), info("line %d", i))
		if i%100 == 99 {
			flush(t, l)
		}
	}
	got := texts(readLogs(t, l, recordOf(call), run.LogQuery{}))
	if len(got) == 0 || len(got) == lines || !slices.Equal(got, numbered(lines-len(got), lines)) {
		t.Errorf("%d lines are left", len(got))
	}
}

func TestLogsAreNotTheClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bustest.Connect(t, bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"}))
	nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	js := bustest.JetStream(t, nc)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := js.Stream(ctx, bus.StreamLogs); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stream = %v", err)
	}
	for name, do := range map[string]func() error{
		"publish":         func() error { return nc.Publish("fh.v1.log.orders.V", nil) },
		"subscribe":       func() error { _, err := nc.SubscribeSync("fh.v1.log.orders.V"); return err },
		"make a consumer": func() error { return nc.Publish("$JS.API.CONSUMER.CREATE."+bus.StreamLogs, nil) },
		"get a message":   func() error { return nc.Publish("$JS.API.DIRECT.GET."+bus.StreamLogs, nil) },
	} {
		if !bustest.Refusal(t, nc, do) {
			t.Errorf("the client may %s", name)
		}
	}
}
