package intake_test

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
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

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

func apiConfig(c *bustest.Control, l *lines) intake.Config {
	return intake.Config{
		Control: c, Logs: l, Grace: 5 * time.Second,
		Flows: func() []api.FlowInfo {
			return []api.FlowInfo{{Flow: "orders", Params: []api.ParamInfo{{Name: "a", Type: "number", Required: true}}}, {Flow: "audit", Description: "<all>"}}
		},
		Code: func(err error) string {
			switch {
			case errors.Is(err, bustest.ErrFinished):
				return api.CodeFinished
			case errors.Is(err, bustest.ErrUnfinished):
				return api.CodeUnfinished
			}
			return ""
		},
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	c := bustest.NewControl()
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, apiConfig(c, newLines("a one", "b two", "a three")))
	open, done, gone := string(bustest.OpenRun), string(bustest.DoneRun), string(bustest.GoneRun)
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
		"retry":            {verb: "retry", body: `{"run":"` + done + `","whole":true}`, answer: `{"run":"` + string(bustest.RunID) + `"}`},
		"retry: wait":      {verb: "retry", body: `{"run":"` + done + `"}`, header: nats.Header{bus.HeaderWait: {"10s"}}, answer: `{"run":"` + string(bustest.RunID) + `","flow":"orders","state":"succeeded"`},
		"retry: task":      {verb: "retry", body: `{"run":"` + done + `","task":"a","key":"k","downstream":true,"definition":"recorded"}`, answer: `{"run":"` + string(bustest.RunID) + `"}`},
		"retry: within":    {verb: "retry", body: `{"run":"` + done + `","within":[{"task":"a","key":"k"}],"task":"b"}`, answer: `{"run":"` + string(bustest.RunID) + `"}`},
		"retry: nowhere":   {verb: "retry", body: `{"run":"` + done + `","within":[{"task":"a"}]}`, code: run.RequestParams},
		"retry: no name":   {verb: "retry", body: `{"run":"` + done + `","within":[{"key":"k"}],"task":"b"}`, code: run.RequestParams},
		"retry: key alone": {verb: "retry", body: `{"run":"` + done + `","key":"k"}`, code: run.RequestParams},
		"retry: both":      {verb: "retry", body: `{"run":"` + done + `","task":"a","whole":true}`, code: run.RequestParams},
		"retry: which":     {verb: "retry", body: `{"run":"` + done + `","definition":"old"}`, code: run.RequestParams},
		"retry: open":      {verb: "retry", body: `{"run":"` + open + `"}`, answer: `{"run":"` + open + `","error":{"code":"unfinished"`, code: "unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, code := bustest.Request(t, nc, bus.APISubject(tt.verb), tt.body, tt.header)
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
		if asked := strings.Split(c.Asked(), "\n"); !slices.Contains(asked, want) {
			t.Errorf("the engine was not asked %q but %q", want, asked)
		}
	}
	for _, how := range []string{
		"Within:[] Task:{Task:a Key:k} Downstream:true Recorded:true",
		"Within:[{Task:a Key:k}] Task:{Task:b Key:} Downstream:false Recorded:false",
	} {
		if want := "retry " + done + " false {Whole:false " + how + " Params:map[] FreshParams:false}"; !slices.Contains(strings.Split(c.Asked(), "\n"), want) {
			t.Errorf("the engine was not asked %q but %q", want, c.Asked())
		}
	}
	if strings.Contains(c.Asked(), "taks") || strings.Count(c.Asked(), "cancel "+open) != 2 {
		t.Errorf("the engine was asked %s", c.Asked())
	}
}

// What the host cannot do is not offered.
func TestAPIWithoutControl(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{})
	for _, verb := range []string{"flows", "list", "get", "watch", "logs", "cancel", "retry"} {
		if _, err := nc.Request(bus.APISubject(verb), nil, bustest.Patience); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s: %v, want %v", verb, err, nats.ErrNoResponders)
		}
	}
}

// A host that does not know a request is told from one that is not there.
func TestHostThatIsTooOld(t *testing.T) {
	t.Parallel()
	client, stop := served(t, &bustest.Starter{}, intake.Config{Flows: func() []api.FlowInfo { return nil }})
	ask := func(want string) {
		t.Helper()
		_, err := client.List(t.Context(), run.Query{})
		if unreachable := (*api.UnreachableError)(nil); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ask("is too old for this request: it does not know fh.v1.api.list")
	stop()
	ask("flowhost is not, or has not started yet")
}

// Once a host declines, every request has an answer until its connection closes.
func TestDecline(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	in, stop := bustest.NewIntake(t, nc, &bustest.Starter{}, nil, intake.Config{})
	if err := in.Decline(); err != nil {
		t.Fatal(err)
	}
	stop()
	for _, verb := range []string{api.VerbList, api.VerbDeadLetters, "run.orders", "nothing"} {
		if answer, code := bustest.Request(t, nc, bus.APISubject(verb), "{}", nil); code != api.CodeUnavailable || !strings.Contains(answer, "flowhost is stopping") {
			t.Errorf("%s: %s", verb, answer)
		}
	}
}

func dialHost(t *testing.T, s *natsd.Server, dir string) *api.Client {
	t.Helper()
	client, err := api.Dial(t.Context(), api.DialConfig{Context: dir + "/" + natsd.ClientContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// served starts a server with an intake on it, and connects as a client does.
func served(t *testing.T, s *bustest.Starter, cfg intake.Config) (client *api.Client, stop func()) {
	t.Helper()
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	stop = bustest.RunIntake(t, bustest.Connect(t, server), s, nil, cfg)
	return dialHost(t, server, dir), stop
}

func TestWatch(t *testing.T) {
	t.Parallel()
	c := bustest.NewControl()
	client, stop := served(t, &bustest.Starter{}, apiConfig(c, newLines()))
	record, version, err := client.Watch(t.Context(), bustest.OpenRun, 0, time.Minute)
	if err != nil || version != 1 || record.State != run.Running || !record.Truncated || string(record.Tasks[0].Input) != "null" {
		t.Fatalf("%+v, %d, %v", record, version, err)
	}
	if record, version, err = client.Watch(t.Context(), bustest.OpenRun, 1, 10*time.Millisecond); err != nil || record != nil || version != 1 {
		t.Errorf("without a change: %+v, %d, %v", record, version, err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		if _, version, err := client.Watch(t.Context(), bustest.OpenRun, 1, time.Minute); err != nil || version != 2 {
			t.Errorf("after a change: %d, %v", version, err)
		}
	})
	c.Advance()
	watching.Wait()

	// Watchers do not hold up a stop.
	watching.Go(func() {
		_, _, err := client.Watch(t.Context(), bustest.OpenRun, 2, time.Minute)
		answer := (*api.AnswerError)(nil)
		if unreachable := (*api.UnreachableError)(nil); !errors.As(err, &unreachable) && (!errors.As(err, &answer) || answer.Code != api.CodeUnavailable) {
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
	s := &bustest.Starter{OnWait: func(ctx context.Context, _ run.ID) (*run.Record, error) {
		select {
		case <-ended:
			return new(run.Record), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
	l := newLines("a one")
	client, _ := served(t, s, apiConfig(bustest.NewControl(), l))
	query := run.LogQuery{Run: bustest.OpenRun}
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
	c := bustest.NewControl()
	c.SetLarge(json.RawMessage(`"` + strings.Repeat("x", jskit.MaxPayload/3) + `"`))
	long := strings.Repeat("\x01", 200<<10) // six bytes each in JSON
	l := newLines()
	for range 8 {
		l.write("a " + long)
	}
	client, _ := served(t, &bustest.Starter{}, apiConfig(c, l))
	page, err := client.List(t.Context(), run.Query{Limit: 8})
	if err != nil || len(page.Runs) != 2 || page.Next != page.Runs[1].Run {
		t.Errorf("%d runs, next %s, %v", len(page.Runs), page.Next, err)
	}
	record, err := client.Get(t.Context(), bustest.OpenRun)
	if err != nil || record.Truncated || len(record.Tasks[0].Output) < jskit.MaxPayload/3 {
		t.Errorf("a large record: %v", err)
	}
	c.SetLarge(json.RawMessage(`"` + strings.Repeat("x", jskit.MaxPayload) + `"`))
	if _, err := client.List(t.Context(), run.Query{Limit: 1}); codeOf(err) != api.CodeTooLarge {
		t.Errorf("a summary that does not fit: %v", err)
	}
	if record, err := client.Get(t.Context(), bustest.OpenRun); err != nil || !record.Truncated || string(record.Tasks[0].Output) != "null" {
		t.Errorf("a record that does not fit: %v", err)
	}
	lines, cursor := 0, ""
	for end := false; !end; lines++ {
		page, err := client.Logs(t.Context(), run.LogQuery{Run: bustest.DoneRun}, cursor, 0)
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
	if answer := (*api.AnswerError)(nil); errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func TestClientStarts(t *testing.T) {
	t.Parallel()
	s := &bustest.Starter{}
	c := bustest.NewControl()
	client, _ := served(t, s, apiConfig(c, newLines()))
	start := api.StartRequest{Flow: "billing/charge", Payload: json.RawMessage(`{"b":"<é>"}`), Params: map[string]json.RawMessage{"a": json.RawMessage("1.50")}, Key: "k1"}
	receipt, err := client.Start(t.Context(), start)
	if err != nil || receipt != (run.Receipt{Run: bustest.RunID, Accepted: true}) {
		t.Fatalf("%+v, %v", receipt, err)
	}
	got := s.Accepted()[0]
	got.Trigger.Time = time.Time{}
	want := run.Request{Flow: start.Flow, Key: "k1", Params: start.Params, Trigger: run.Trigger{
		Kind: run.TriggerManual, Subject: "fh.v1.api.run.billing/charge", Payload: start.Payload,
		Headers: map[string][]string{bus.HeaderKey: {"k1"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if receipt, err = client.Start(t.Context(), start); err != nil || receipt != (run.Receipt{Run: bustest.RunID, Accepted: true, Repeated: true}) {
		t.Errorf("with a known key: %+v, %v", receipt, err)
	}
	if receipt, err = client.Start(t.Context(), api.StartRequest{Flow: "orders", Payload: json.RawMessage(`"filtered"`)}); err != nil || receipt.Accepted {
		t.Errorf("filtered: %+v, %v", receipt, err)
	}
	if _, err = client.Start(t.Context(), api.StartRequest{Flow: "unknown"}); codeOf(err) != run.RequestUnknownFlow {
		t.Errorf("unknown flow: %v", err)
	}
	if _, err = client.Start(t.Context(), api.StartRequest{Flow: "orders", Payload: json.RawMessage(`"` + strings.Repeat("x", jskit.MaxPayload) + `"`)}); codeOf(err) != run.RequestSize {
		t.Errorf("a payload larger than a message: %v", err)
	}
	if receipt, err = client.Retry(t.Context(), bustest.DoneRun, run.RerunOptions{}); err != nil || receipt.Run != bustest.RunID {
		t.Errorf("retry: %+v, %v", receipt, err)
	}
	if err := client.Cancel(t.Context(), bustest.OpenRun, run.TaskRef{}, "why"); err != nil {
		t.Error(err)
	}
	if flows, err := client.Flows(t.Context(), ""); err != nil || len(flows) != 2 || flows[0].Flow != "audit" {
		t.Errorf("flows: %+v, %v", flows, err)
	}
}

// A header with params that are no object is refused; an overlong key is a key.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	if answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderParams: {"[1]"}}); code != api.CodeHeader {
		t.Errorf("params: %s", answer)
	}
	long := strings.Repeat("k", 1000)
	for _, want := range []string{`{"run":"` + string(bustest.RunID) + `"}`, `{"run":"` + string(bustest.RunID) + `","repeated":true}`} {
		if answer, _ := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderKey: {long}}); answer != want {
			t.Errorf("%s, want %s", answer, want)
		}
	}
	if key := s.Accepted()[0].Key; len(key) > 80 {
		t.Errorf("the engine gets a key of %d bytes", len(key))
	}
}

func TestUnreadyHost(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	var mu sync.Mutex
	why := errors.New("the disk is full")
	cfg := apiConfig(bustest.NewControl(), newLines())
	cfg.Ready = func() error {
		mu.Lock()
		defer mu.Unlock()
		return why
	}
	var log bustest.LogLines
	cfg.Log = log.Logger()
	bustest.Publish(t, nc, "fh.v1.trigger.orders", "1")
	bustest.RunIntake(t, nc, s, nil, cfg)
	answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "2", nil)
	if code != api.CodeUnavailable || !strings.Contains(answer, "the disk is full") {
		t.Errorf("a request: %s", answer)
	}
	if answer, code := bustest.Request(t, nc, bus.APISubject("retry"), `{"run":"`+string(bustest.DoneRun)+`"}`, nil); code != api.CodeUnavailable {
		t.Errorf("a retry: %s", answer)
	}
	if _, code := bustest.Request(t, nc, bus.APISubject("get"), `{"run":"`+string(bustest.DoneRun)+`"}`, nil); code != "" {
		t.Errorf("a reading request: %s", code)
	}
	bustest.Eventually(t, "the stream's message waits", func() bool { return log.Count("waiting to start a run") == 1 })
	if n := s.Attempts(); n != 0 {
		t.Errorf("%d requests reached the engine", n)
	}
	mu.Lock()
	why = nil
	mu.Unlock()
	if got := s.Payloads(t, 1); got[0] != "1" {
		t.Errorf("payloads %q", got)
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	for name, cfg := range map[string]api.DialConfig{
		"nobody listens": {URL: "nats://127.0.0.1:1"},
		"not let in":     {URL: s.URL()},
	} {
		_, err := api.Dial(t.Context(), cfg)
		if unreachable := (*api.UnreachableError)(nil); !errors.As(err, &unreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, cfg := range map[string]api.DialConfig{
		"no such context": {Context: dir + "/none.json"},
		"no credentials":  {URL: s.URL(), Creds: dir + "/none.creds"},
	} {
		_, err := api.Dial(t.Context(), cfg)
		if wrong := (*bus.CredentialsError)(nil); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := dialHost(t, s, dir)
	_, err := client.Get(t.Context(), bustest.DoneRun)
	if unreachable := (*api.UnreachableError)(nil); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no host answers") {
		t.Errorf("without a host: %v", err)
	}
}
