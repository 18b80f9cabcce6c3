package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

const (
	goneRun = run.ID("01HZXW0000000000000000G0NE")
	doneRun = run.ID("01HZXW0000000000000000D0NE")
	openRun = run.ID("01HZXW0000000000000000CPEN")
)

var errFinished, errUnfinished = errors.New("the run has finished already"), errors.New("the run has not finished")

// control stands for an engine that has two runs: one that has succeeded, and one
// that goes on until it is told to end.
type control struct {
	mu      sync.Mutex
	done    []string      // what was asked for
	version uint64        // of openRun
	changed chan struct{} // closed with each version
	large   json.RawMessage
}

func newControl() *control { return &control{version: 1, changed: make(chan struct{})} }

func (c *control) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, fmt.Sprintf(format, args...))
}

// advance gives openRun another version.
func (c *control) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *control) Get(_ context.Context, id run.ID) (*run.Record, error) {
	tasks := []run.TaskRecord{{Task: "a", State: run.Running, Input: json.RawMessage("1"), Output: c.large}}
	switch id {
	case doneRun:
		return &run.Record{Run: id, Flow: "orders", State: run.Succeeded, Output: json.RawMessage(`"<ok>"`)}, nil
	case openRun:
		return &run.Record{Run: id, Flow: "orders", State: run.Running, Tasks: tasks}, nil
	}
	return nil, fmt.Errorf("run %s: %w", id, run.ErrUnknown)
}

// List answers with as many runs as asked for, from an endless supply.
func (c *control) List(_ context.Context, q run.Query) (run.Page, error) {
	c.note("list %s %v %s", q.Flow, q.States, q.Before)
	if q.Flow == "none" {
		return run.Page{}, nil
	}
	page := run.Page{Next: goneRun}
	for i := range q.Size() {
		id := run.ID(fmt.Sprintf("01HZXW%020d", q.Size()-i))
		page.Runs = append(page.Runs, run.Summary{Run: id, Flow: q.Flow, Error: strings.Trim(string(c.large), `"`)})
	}
	return page, nil
}

func (c *control) Watch(ctx context.Context, id run.ID, seen uint64) (*run.Record, uint64, error) {
	for {
		c.mu.Lock()
		version, changed := c.version, c.changed
		c.mu.Unlock()
		record, err := c.Get(ctx, id)
		if err != nil || version > seen {
			return record, version, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}

func (c *control) Cancel(ctx context.Context, id run.ID, reason string) error {
	c.note("cancel %s %s", id, reason)
	if id == doneRun {
		return errFinished
	}
	_, err := c.Get(ctx, id)
	return err
}

func (c *control) CancelTask(_ context.Context, id run.ID, task run.TaskRef, reason string) error {
	c.note("cancel %s %s %s %s", id, task.Task, task.Key, reason)
	return nil
}

func (c *control) Retry(_ context.Context, id run.ID, how run.RerunOptions) (run.Receipt, error) {
	c.note("retry %s %t%s", id, how.Whole, strings.TrimPrefix(fmt.Sprintf(" %+v", how), fmt.Sprintf(" %+v", run.RerunOptions{Whole: how.Whole})))
	if id == openRun {
		return run.Receipt{}, errUnfinished
	}
	return run.Receipt{Run: runID, Accepted: true}, nil
}

func (c *control) asked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.done, "\n")
}

// lines stands for logs: "<task> <message>" in a fixed order, then what is written.
type lines struct {
	mu    sync.Mutex
	all   []string
	wrote chan struct{}
}

func newLines(all ...string) *lines { return &lines{all: all, wrote: make(chan struct{})} }

func (l *lines) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	close(l.wrote)
	l.wrote = make(chan struct{})
}

func (l *lines) Read(ctx context.Context, of *run.Record, q run.LogQuery, after string, follow bool, yield func(run.LogEntry, string) bool) error {
	next := 0
	fmt.Sscan(after, &next)
	for {
		l.mu.Lock()
		all, wrote := l.all, l.wrote
		l.mu.Unlock()
		for ; next < len(all); next++ {
			task, message, _ := strings.Cut(all[next], " ")
			if q.Task != "" && q.Task != task {
				continue
			}
			entry := run.LogEntry{Run: of.Run, Flow: of.Flow, Task: task, LogLine: run.LogLine{Level: "info", Message: message}}
			if !yield(entry, fmt.Sprint(next+1)) {
				return nil
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-wrote:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func apiConfig(c *control, l *lines) bus.IntakeConfig {
	return bus.IntakeConfig{
		Control: c, Logs: l, Grace: 5 * time.Second,
		Flows: func() []bus.FlowInfo {
			return []bus.FlowInfo{{Flow: "orders", Params: []bus.ParamInfo{{Name: "a", Type: "number", Required: true}}}, {Flow: "audit", Description: "<all>"}}
		},
		Code: func(err error) string {
			switch {
			case errors.Is(err, errFinished):
				return bus.CodeFinished
			case errors.Is(err, errUnfinished):
				return bus.CodeUnfinished
			}
			return ""
		},
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	c := newControl()
	runIntake(t, nc, &starter{}, nil, apiConfig(c, newLines("a one", "b two", "a three")))
	open, done, gone := string(openRun), string(doneRun), string(goneRun)
	wait := nats.Header{bus.HeaderWait: {"20ms"}}
	for name, tt := range map[string]struct {
		verb, body   string
		header       nats.Header
		answer, code string // the answer's beginning
	}{
		"flows":            {verb: "flows", answer: `{"flows":[{"flow":"audit","description":"<all>"},{"flow":"orders","params":[{"name":"a","type":"number","required":true}]}]}`},
		"one flow":         {verb: "flows", body: `{"flow":"audit"}`, answer: `{"flows":[{"flow":"audit","description":"<all>"}]}`},
		"flows after":      {verb: "flows", body: `{"after":"orders"}`, answer: `{"flows":[]}`},
		"get":              {verb: "get", body: `{"run":"` + done + `"}`, answer: `{"run":"` + done + `","flow":"orders","state":"succeeded"`},
		"get: unknown":     {verb: "get", body: `{"run":"` + gone + `"}`, answer: `{"run":"` + gone + `","error":{"code":"unknown_run"`, code: "unknown_run"},
		"get: no id":       {verb: "get", body: `{"run":"x"}`, answer: `{"error":{"code":"params"`, code: "params"},
		"get: nothing":     {verb: "get", answer: `{"error":{"code":"params"`, code: "params"},
		"get: no JSON":     {verb: "get", body: `run`, answer: `{"error":{"code":"payload"`, code: "payload"},
		"get: two objects": {verb: "get", body: `{"run":"` + done + `"}{}`, answer: `{"error":{"code":"payload"`, code: "payload"},
		"list":             {verb: "list", body: `{"flow":"orders","states":["failed"],"limit":1}`, answer: `{"runs":[{"run":"01HZXW00000000000000000001","flow":"orders"`},
		"list: none":       {verb: "list", body: `{"flow":"none"}`, answer: `{"runs":[]}`},
		"list: no state":   {verb: "list", body: `{"states":["done"]}`, answer: `{"error":{"code":"params","message":"\"done\" is no state of a run`, code: "params"},
		"list: no cursor":  {verb: "list", body: `{"before":"x"}`, answer: `{"error":{"code":"params"`, code: "params"},
		"list: negative":   {verb: "list", body: `{"limit":-1}`, answer: `{"error":{"code":"params"`, code: "params"},
		"list: misspelt":   {verb: "list", body: `{"state":"failed"}`, answer: `{"error":{"code":"payload","message":"the body is not what is expected here: json: unknown field \"state\""`, code: "payload"},
		"watch: now":       {verb: "watch", body: `{"run":"` + open + `"}`, answer: `{"record":{"run":"` + open + `"`},
		"watch: nothing":   {verb: "watch", body: `{"run":"` + open + `","seen":1}`, answer: `{"record":null,"version":1}`},
		"watch: in time":   {verb: "watch", body: `{"run":"` + open + `","seen":1}`, header: wait, answer: `{"record":null,"version":1}`},
		"watch: unknown":   {verb: "watch", body: `{"run":"` + gone + `"}`, header: wait, answer: `{"run":"` + gone + `","error":{"code":"unknown_run"`, code: "unknown_run"},
		"watch: wait":      {verb: "watch", body: `{"run":"` + open + `"}`, header: nats.Header{bus.HeaderWait: {"x"}}, answer: `{"error":{"code":"header"`, code: "header"},
		"logs":             {verb: "logs", body: `{"run":"` + open + `"}`, answer: `{"lines":[{"run":"` + open + `","flow":"orders","task":"a","attempt":0,"time":"0001-01-01T00:00:00Z","level":"info","message":"one"}`},
		"logs: behind":     {verb: "logs", body: `{"run":"` + done + `","task":"a","after":"3"}`, answer: `{"lines":[],"next":"3","end":true}`},
		"logs: in time":    {verb: "logs", body: `{"run":"` + open + `","after":"3","follow":true}`, header: wait, answer: `{"lines":[],"next":"3"}`},
		"logs: unknown":    {verb: "logs", body: `{"run":"` + gone + `"}`, answer: `{"run":"` + gone + `","error":{"code":"unknown_run"`, code: "unknown_run"},
		"logs: key":        {verb: "logs", body: `{"run":"` + open + `","key":"k"}`, answer: `{"error":{"code":"params"`, code: "params"},
		"logs: level":      {verb: "logs", body: `{"run":"` + open + `","level":"loud"}`, answer: `{"error":{"code":"params"`, code: "params"},
		"logs: attempt":    {verb: "logs", body: `{"run":"` + open + `","attempt":-1}`, answer: `{"error":{"code":"params"`, code: "params"},
		"cancel":           {verb: "cancel", body: `{"run":"` + open + `","reason":"why"}`, answer: `{"run":"` + open + `"}`},
		"cancel: task":     {verb: "cancel", body: `{"run":"` + open + `","task":"a","key":"k","reason":"why"}`, answer: `{"run":"` + open + `"}`},
		"cancel: key only": {verb: "cancel", body: `{"run":"` + open + `","key":"k"}`, answer: `{"error":{"code":"params"`, code: "params"},
		"cancel: finished": {verb: "cancel", body: `{"run":"` + done + `"}`, answer: `{"run":"` + done + `","error":{"code":"finished"`, code: "finished"},
		"cancel: unknown":  {verb: "cancel", body: `{"run":"` + gone + `"}`, answer: `{"run":"` + gone + `","error":{"code":"unknown_run"`, code: "unknown_run"},
		"cancel: misspelt": {verb: "cancel", body: `{"run":"` + open + `","taks":"a"}`, answer: `{"error":{"code":"payload"`, code: "payload"},
		"retry":            {verb: "retry", body: `{"run":"` + done + `","whole":true}`, answer: `{"run":"` + string(runID) + `"}`},
		"retry: wait":      {verb: "retry", body: `{"run":"` + done + `"}`, header: nats.Header{bus.HeaderWait: {"10s"}}, answer: `{"run":"` + string(runID) + `","flow":"orders","state":"succeeded"`},
		"retry: task":      {verb: "retry", body: `{"run":"` + done + `","task":"a","key":"k","downstream":true,"definition":"recorded"}`, answer: `{"run":"` + string(runID) + `"}`},
		"retry: within":    {verb: "retry", body: `{"run":"` + done + `","within":[{"task":"a","key":"k"}],"task":"b"}`, answer: `{"run":"` + string(runID) + `"}`},
		"retry: nowhere":   {verb: "retry", body: `{"run":"` + done + `","within":[{"task":"a"}]}`, code: run.RequestParams},
		"retry: no name":   {verb: "retry", body: `{"run":"` + done + `","within":[{"key":"k"}],"task":"b"}`, code: run.RequestParams},
		"retry: key alone": {verb: "retry", body: `{"run":"` + done + `","key":"k"}`, code: run.RequestParams},
		"retry: both":      {verb: "retry", body: `{"run":"` + done + `","task":"a","whole":true}`, code: run.RequestParams},
		"retry: which":     {verb: "retry", body: `{"run":"` + done + `","definition":"old"}`, code: run.RequestParams},
		"retry: open":      {verb: "retry", body: `{"run":"` + open + `"}`, answer: `{"run":"` + open + `","error":{"code":"unfinished"`, code: "unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, code := request(t, nc, bus.APISubject(tt.verb), tt.body, tt.header)
			if !strings.HasPrefix(answer, tt.answer) || code != tt.code {
				t.Errorf("answer %s, code %q; want %s…, %q", answer, code, tt.answer, tt.code)
			}
			if !json.Valid([]byte(answer)) {
				t.Error("the answer is not JSON")
			}
		})
	}
	for _, want := range []string{
		"cancel " + open + " why", "cancel " + open + " a k why", "retry " + done + " true", "retry " + done + " false", "list orders [failed] ",
	} {
		if asked := strings.Split(c.asked(), "\n"); !slices.Contains(asked, want) {
			t.Errorf("the engine was not asked %q but %q", want, asked)
		}
	}
	for _, how := range []string{
		"Within:[] Task:{Task:a Key:k} Downstream:true Recorded:true",
		"Within:[{Task:a Key:k}] Task:{Task:b Key:} Downstream:false Recorded:false",
	} {
		if want := "retry " + done + " false {Whole:false " + how + " Params:map[] FreshParams:false}"; !slices.Contains(strings.Split(c.asked(), "\n"), want) {
			t.Errorf("the engine was not asked %q but %q", want, c.asked())
		}
	}
	if strings.Contains(c.asked(), "taks") || strings.Count(c.asked(), "cancel "+open) != 2 {
		t.Errorf("the engine was asked %s", c.asked())
	}
}

// What the host cannot do is not offered.
func TestAPIWithoutControl(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	runIntake(t, nc, &starter{}, nil, bus.IntakeConfig{})
	for _, verb := range []string{"flows", "list", "get", "watch", "logs", "cancel", "retry"} {
		if _, err := nc.Request(bus.APISubject(verb), nil, patience); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s: %v, want %v", verb, err, nats.ErrNoResponders)
		}
	}
}

func dialHost(t *testing.T, s *bus.Server, dir string) *bus.Client {
	t.Helper()
	client, err := bus.Dial(t.Context(), bus.DialConfig{Context: dir + "/" + bus.ClientContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// served starts a server with an intake on it, and connects as a client does.
func served(t *testing.T, s *starter, cfg bus.IntakeConfig) (client *bus.Client, stop func()) {
	t.Helper()
	dir := t.TempDir()
	server := startServer(t, bus.ServerConfig{Dir: dir, Listen: "127.0.0.1:0"})
	stop = runIntake(t, connect(t, server), s, nil, cfg)
	return dialHost(t, server, dir), stop
}

func TestWatch(t *testing.T) {
	t.Parallel()
	c := newControl()
	client, stop := served(t, &starter{}, apiConfig(c, newLines()))
	record, version, err := client.Watch(t.Context(), openRun, 0, time.Minute)
	if err != nil || version != 1 || record.State != run.Running || !record.Truncated || string(record.Tasks[0].Input) != "null" {
		t.Fatalf("%+v, %d, %v", record, version, err)
	}
	if record, version, err = client.Watch(t.Context(), openRun, 1, 10*time.Millisecond); err != nil || record != nil || version != 1 {
		t.Errorf("without a change: %+v, %d, %v", record, version, err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		if _, version, err := client.Watch(t.Context(), openRun, 1, time.Minute); err != nil || version != 2 {
			t.Errorf("after a change: %d, %v", version, err)
		}
	})
	c.advance()
	watching.Wait()

	// Watchers do not hold up a stop.
	watching.Go(func() {
		_, _, err := client.Watch(t.Context(), openRun, 2, time.Minute)
		answer := (*bus.AnswerError)(nil)
		if unreachable := (*bus.UnreachableError)(nil); !errors.As(err, &unreachable) && (!errors.As(err, &answer) || answer.Code != bus.CodeUnavailable) {
			t.Errorf("while the host stops: %v", err)
		}
	})
	began := time.Now()
	stop()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the stop took %s", took)
	}
	watching.Wait()
}

func TestLogsFollow(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := &starter{wait: func(ctx context.Context, _ run.ID) (*run.Record, error) {
		select {
		case <-ended:
			return new(run.Record), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
	l := newLines("a one")
	client, _ := served(t, s, apiConfig(newControl(), l))
	query := run.LogQuery{Run: openRun}
	page, err := client.Logs(t.Context(), query, "", time.Minute)
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "one" || page.End {
		t.Fatalf("%+v, %v", page, err)
	}
	var following sync.WaitGroup
	following.Go(func() {
		page, err := client.Logs(t.Context(), query, page.Next, time.Minute)
		if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "two" {
			t.Errorf("after a line was written: %+v, %v", page, err)
		}
		page, err = client.Logs(t.Context(), query, page.Next, time.Minute)
		if err != nil || len(page.Lines) != 0 || page.Next != "2" {
			t.Errorf("after the end of the run: %+v, %v", page, err)
		}
	})
	l.write("b two")
	close(ended)
	following.Wait()
}

// Answers that are too large for a message are paged.
func TestAPILargeAnswers(t *testing.T) {
	t.Parallel()
	c := newControl()
	c.large = json.RawMessage(`"` + strings.Repeat("x", bus.MaxPayload/3) + `"`)
	long := strings.Repeat("\x01", 200<<10) // six bytes each in JSON
	l := newLines()
	for range 8 {
		l.write("a " + long)
	}
	client, _ := served(t, &starter{}, apiConfig(c, l))
	page, err := client.List(t.Context(), run.Query{Limit: 8})
	if err != nil || len(page.Runs) != 2 || page.Next != page.Runs[1].Run {
		t.Errorf("%d runs, next %s, %v", len(page.Runs), page.Next, err)
	}
	record, err := client.Get(t.Context(), openRun)
	if err != nil || record.Truncated || len(record.Tasks[0].Output) < bus.MaxPayload/3 {
		t.Errorf("a large record: %v", err)
	}
	c.large = json.RawMessage(`"` + strings.Repeat("x", bus.MaxPayload) + `"`)
	if _, err := client.List(t.Context(), run.Query{Limit: 1}); codeOf(err) != bus.CodeTooLarge {
		t.Errorf("a summary that does not fit: %v", err)
	}
	if record, err := client.Get(t.Context(), openRun); err != nil || !record.Truncated || string(record.Tasks[0].Output) != "null" {
		t.Errorf("a record that does not fit: %v", err)
	}
	lines, cursor := 0, ""
	for end := false; !end; lines++ {
		page, err := client.Logs(t.Context(), run.LogQuery{Run: doneRun}, cursor, 0)
		if err != nil {
			t.Fatal(err)
		}
		lines += len(page.Lines) - 1
		cursor, end = page.Next, page.End
	}
	if lines != 8 {
		t.Errorf("%d lines, want 8", lines)
	}
}

func codeOf(err error) string {
	if answer := (*bus.AnswerError)(nil); errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func TestClientStarts(t *testing.T) {
	t.Parallel()
	s := &starter{}
	c := newControl()
	client, _ := served(t, s, apiConfig(c, newLines()))
	start := bus.Start{Flow: "billing/charge", Payload: json.RawMessage(`{"b":"<é>"}`), Params: map[string]json.RawMessage{"a": json.RawMessage("1.50")}, Key: "k1"}
	receipt, err := client.Start(t.Context(), start)
	if err != nil || receipt != (run.Receipt{Run: runID, Accepted: true}) {
		t.Fatalf("%+v, %v", receipt, err)
	}
	got := s.accepted()[0]
	got.Trigger.Time = time.Time{}
	want := run.Request{Flow: start.Flow, Key: "k1", Params: start.Params, Trigger: run.Trigger{
		Kind: run.TriggerManual, Subject: "fh.v1.api.run.billing/charge", Payload: start.Payload,
		Headers: map[string][]string{bus.HeaderKey: {"k1"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if receipt, err = client.Start(t.Context(), start); err != nil || receipt != (run.Receipt{Run: runID, Accepted: true, Repeated: true}) {
		t.Errorf("with a known key: %+v, %v", receipt, err)
	}
	if receipt, err = client.Start(t.Context(), bus.Start{Flow: "orders", Payload: json.RawMessage(`"filtered"`)}); err != nil || receipt.Accepted {
		t.Errorf("filtered: %+v, %v", receipt, err)
	}
	if _, err = client.Start(t.Context(), bus.Start{Flow: "unknown"}); codeOf(err) != run.RequestUnknownFlow {
		t.Errorf("unknown flow: %v", err)
	}
	if _, err = client.Start(t.Context(), bus.Start{Flow: "orders", Payload: json.RawMessage(`"` + strings.Repeat("x", bus.MaxPayload) + `"`)}); codeOf(err) != run.RequestSize {
		t.Errorf("a payload larger than a message: %v", err)
	}
	if receipt, err = client.Retry(t.Context(), doneRun, run.RerunOptions{}); err != nil || receipt.Run != runID {
		t.Errorf("retry: %+v, %v", receipt, err)
	}
	if err := client.Cancel(t.Context(), openRun, run.TaskRef{}, "why"); err != nil {
		t.Error(err)
	}
	if flows, err := client.Flows(t.Context(), ""); err != nil || len(flows) != 2 || flows[0].Flow != "audit" {
		t.Errorf("flows: %+v, %v", flows, err)
	}
}

// A header with params that are no object is refused; an overlong key is a key.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	s := &starter{}
	runIntake(t, nc, s, nil, bus.IntakeConfig{})
	if answer, code := request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderParams: {"[1]"}}); code != bus.CodeHeader {
		t.Errorf("params: %s", answer)
	}
	long := strings.Repeat("k", 1000)
	for _, want := range []string{`{"run":"` + string(runID) + `"}`, `{"run":"` + string(runID) + `","repeated":true}`} {
		if answer, _ := request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderKey: {long}}); answer != want {
			t.Errorf("%s, want %s", answer, want)
		}
	}
	if key := s.accepted()[0].Key; len(key) > 80 {
		t.Errorf("the engine gets a key of %d bytes", len(key))
	}
}

func TestUnreadyHost(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	s := &starter{}
	var mu sync.Mutex
	why := errors.New("the disk is full")
	cfg := apiConfig(newControl(), newLines())
	cfg.Ready = func() error {
		mu.Lock()
		defer mu.Unlock()
		return why
	}
	var log logLines
	cfg.Log = log.logger()
	publish(t, nc, "fh.v1.trigger.orders", "1")
	runIntake(t, nc, s, nil, cfg)
	answer, code := request(t, nc, "fh.v1.api.run.orders", "2", nil)
	if code != bus.CodeUnavailable || !strings.Contains(answer, "the disk is full") {
		t.Errorf("a request: %s", answer)
	}
	if answer, code := request(t, nc, bus.APISubject("retry"), `{"run":"`+string(doneRun)+`"}`, nil); code != bus.CodeUnavailable {
		t.Errorf("a retry: %s", answer)
	}
	if _, code := request(t, nc, bus.APISubject("get"), `{"run":"`+string(doneRun)+`"}`, nil); code != "" {
		t.Errorf("a reading request: %s", code)
	}
	eventually(t, "the stream's message waits", func() bool { return log.count("waiting to start a run") == 1 })
	if n := s.attempts(); n != 0 {
		t.Errorf("%d requests reached the engine", n)
	}
	mu.Lock()
	why = nil
	mu.Unlock()
	if got := s.payloads(t, 1); got[0] != "1" {
		t.Errorf("payloads %q", got)
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, bus.ServerConfig{Dir: dir, Listen: "127.0.0.1:0"})
	for name, cfg := range map[string]bus.DialConfig{
		"nobody listens":  {URL: "nats://127.0.0.1:1"},
		"no such context": {Context: dir + "/none.json"},
		"not let in":      {URL: s.URL()},
		"no credentials":  {URL: s.URL(), Creds: dir + "/none.creds"},
	} {
		_, err := bus.Dial(t.Context(), cfg)
		if unreachable := (*bus.UnreachableError)(nil); !errors.As(err, &unreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := dialHost(t, s, dir)
	_, err := client.Get(t.Context(), doneRun)
	if unreachable := (*bus.UnreachableError)(nil); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no host answers") {
		t.Errorf("without a host: %v", err)
	}
}
