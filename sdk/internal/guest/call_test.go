package guest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/sdk/abi"
)

// scripted is a Host that answers from its fields and remembers what it got.
type scripted struct {
	fields  map[abi.Field]string
	readErr error
	left    time.Duration
	limited bool
	stop    bool
	grace   time.Duration
	wake    chan struct{} // lets Wait come back

	output, fail string
	log          []string
}

func (h *scripted) Read(f abi.Field) ([]byte, error) { return []byte(h.fields[f]), h.readErr }
func (h *scripted) Output(data []byte) error         { h.output = string(data); return nil }
func (h *scripted) Fail(failure []byte)              { h.fail = string(failure) }
func (h *scripted) TimeLeft() (time.Duration, bool)  { return h.left, h.limited }
func (h *scripted) Canceled() (time.Duration, bool)  { return h.grace, h.stop }
func (h *scripted) Operate(_ context.Context, kind string, head, body []byte) (Reply, error) {
	return Reply{}, &abi.Fault{Code: "denied", Message: kind}
}

func (h *scripted) Alone(kind string, head, body []byte, _ bool) (Reply, error) {
	return h.Operate(context.TODO(), kind, head, body)
}

func (h *scripted) Begin(kind string, head, body []byte) (Pending, error) {
	reply, err := h.Alone(kind, head, body, false)
	return done(reply), err
}

func (h *scripted) Wait(stop <-chan struct{}) bool {
	select {
	case <-h.wake:
		return true
	case <-stop:
		return false
	}
}
func (h *scripted) Log(l abi.Level, message string, fields []byte) {
	h.log = append(h.log, l.String()+" "+message+" "+string(fields))
}

// during runs fn in a call of the host's.
func during(t *testing.T, h Host, fn func(*Call)) {
	t.Helper()
	if status := Serve(h, func(c *Call) ([]byte, error) { fn(c); return nil, nil }); status != statusOK {
		t.Errorf("status %d", status)
	}
}

func TestContextFollowsTheHost(t *testing.T) {
	t.Parallel()
	h := &scripted{}
	during(t, h, func(c *Call) { followsTheHost(t, h, c) })
}

func followsTheHost(t *testing.T, h *scripted, c *Call) {
	done := c.Done()
	if _, limited := c.Deadline(); limited || c.Err() != nil || closed(done) {
		t.Fatal("the call ended before the host said so")
	}
	h.stop = true
	if closed(done) {
		t.Fatal("the end was noticed without a look")
	}
	if err := c.Err(); err != context.Canceled || !closed(done) {
		t.Fatalf("after the host said stop: %v", err)
	}
	h.stop, h.limited = false, true
	if err := c.Err(); err != context.Canceled {
		t.Errorf("the reason changed to %v", err)
	}
}

func TestCanceledAsksEachTime(t *testing.T) {
	t.Parallel()
	h := &scripted{}
	during(t, h, func(c *Call) {
		if left, canceled := c.Canceled(); left != 0 || canceled || c.Err() != nil {
			t.Errorf("before: %v, %t, %v", left, canceled, c.Err())
		}
		for _, h.grace = range []time.Duration{time.Second, time.Millisecond} {
			h.stop = true
			if left, canceled := c.Canceled(); left != h.grace || !canceled || c.Err() != context.Canceled {
				t.Errorf("%v, %t, %v; want %v", left, canceled, c.Err(), h.grace)
			}
		}
		if !closed(c.Done()) {
			t.Error("the channel is open")
		}
	})
}

// What waits for the channel, or for a context that was made of this one, is woken.
func TestWatcherSeesTheEnd(t *testing.T) {
	t.Parallel()
	h := &scripted{wake: make(chan struct{})}
	during(t, h, func(c *Call) {
		child, cancel := context.WithCancel(c)
		defer cancel()
		again := c.Done()
		h.wake <- struct{}{} // too early: nothing has ended
		h.wake <- struct{}{} // that look is over
		c.mu.Lock()
		h.stop = true
		c.mu.Unlock()
		select {
		case h.wake <- struct{}{}:
		case <-again: // by the second look, which was late
		}
		<-child.Done()
		if child.Err() != context.Canceled || !closed(again) {
			t.Errorf("child %v", child.Err())
		}
	})
}

// A function that waits for nothing leaves no goroutine behind, which this test
// would wait for.
func TestWatcherEndsWithTheFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left *Call
		during(t, &scripted{}, func(c *Call) {
			c.Done()
			c.Done()
			left = c
		})
		if closed(left.Done()) { // starts none any more
			t.Error("the call was canceled")
		}
	})
}

func TestContextDeadline(t *testing.T) {
	t.Parallel()
	h := &scripted{limited: true, left: time.Hour, stop: false}
	during(t, h, func(c *Call) { keepsTheDeadline(t, h, c) })
}

func keepsTheDeadline(t *testing.T, h *scripted, c *Call) {
	first, ok := c.Deadline()
	if left := time.Until(first); !ok || left > time.Hour || left < time.Hour-time.Minute {
		t.Errorf("deadline in %s, %t", left, ok)
	}
	h.left, h.stop = 0, true // a host stops a call whose time is up
	if again, _ := c.Deadline(); !again.Equal(first) {
		t.Error("the deadline moved")
	}
	if !closed(c.Done()) || c.Err() != context.DeadlineExceeded {
		t.Errorf("after the deadline: %v", c.Err())
	}
	child, cancel := context.WithTimeout(c, time.Minute)
	defer cancel()
	if child.Err() != context.DeadlineExceeded {
		t.Errorf("a child of the call has %v", child.Err())
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	h := &scripted{}
	log := newCall(h).Log()
	log.Debug("plain")
	log.Info("attrs", "n", 1, "text", "<a>", "took", time.Second, "err", errors.New("broken"))
	log.With("a", 1).With("b", 2).Warn("with", "c", 3)
	log.WithGroup("g").With("a", 1).WithGroup("h").Error("groups", "b", 2, slog.Group("i", "c", 3))
	log.WithGroup("empty").Info("no attributes")
	log.Info("names of slog's own", "level", "deep", "msg", "m", "time", "t")
	log.Log(t.Context(), slog.LevelError+4, "above error")
	want := []string{
		`debug plain `,
		`info attrs {"n":1,"text":"<a>","took":1000000000,"err":"broken"}`,
		`warn with {"a":1,"b":2,"c":3}`,
		`error groups {"g":{"a":1,"h":{"b":2,"i":{"c":3}}}}`,
		`info no attributes `,
		`info names of slog's own {"level":"deep","msg":"m","time":"t"}`,
		`error above error `,
	}
	if diff := cmp.Diff(want, h.log); diff != "" {
		t.Error(diff)
	}
}

func TestIdentityIsRequired(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "no identity: no such field") {
			t.Errorf("panicked with %q", text)
		}
	}()
	newCall(&scripted{readErr: errors.New("no such field")}).Call()
}

type document struct {
	Name  string     `json:"name"`
	Count *int8      `json:"count"`
	Price float64    `json:"price"`
	Ready bool       `json:"ready"`
	Items []document `json:"items"`
	At    time.Time  `json:"at"`
}

func TestInputMismatch(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"name":1}`:              "input.name: a string is expected, not number",
		`{"count":300}`:           "input.count: an integer (int8) is expected, not number 300",
		`{"price":"1"}`:           "input.price: a number is expected, not string",
		`{"ready":"yes"}`:         "input.ready: a bool is expected, not string",
		`{"items":{}}`:            "input.items: an array is expected, not object",
		`{"items":[{"name":[]}]}`: "input.items.name: a string is expected, not array",
		`{"items":["a"]}`:         "input.items: an object is expected, not string",
		`7`:                       "input: an object is expected, not number",
		`{"at":"tomorrow"}`:       `input: parsing time "tomorrow" as "2006-01-02T15:04:05Z07:00": cannot parse "tomorrow" as "2006"`,
		`{`:                       "input: unexpected end of JSON input",
	}
	for input, want := range tests {
		h := &scripted{fields: map[abi.Field]string{abi.FieldInput: input}}
		status := Serve(h, Typed(func(*Call, document) (int, error) { return 0, nil }))
		var got abi.Failure
		if err := json.Unmarshal([]byte(h.fail), &got); err != nil {
			t.Fatalf("%s gave %q: %v", input, h.fail, err)
		}
		if diff := cmp.Diff(abi.Failure{Code: "input", Message: want}, got); diff != "" || status != statusFailed {
			t.Errorf("%s: status %d\n%s", input, status, diff)
		}
	}
}

func TestInputKinds(t *testing.T) {
	t.Parallel()
	check(t, `{"a": 1}`, `{"a":1}`, func(_ *Call, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	check(t, `{"a":1}`, `{}`, func(_ *Call, in struct{}) (struct{}, error) { return in, nil })
	check(t, `null`, `true`, func(_ *Call, in *document) (bool, error) { return in == nil, nil })
	check(t, `{"name":"x"}`, `"x"`, func(_ *Call, in *document) (string, error) { return in.Name, nil })
	check(t, ``, `0`, func(_ *Call, in int) (int, error) { return in, nil })
	check(t, `["<a> & b"]`, `"<a> & b"`, func(_ *Call, in []string) (any, error) { return in[0], nil })
	check(t, `null`, `null`, func(*Call, any) (*document, error) { return nil, nil })
}

func check[In, Out any](t *testing.T, input, want string, fn func(*Call, In) (Out, error)) {
	t.Helper()
	h := &scripted{fields: map[abi.Field]string{abi.FieldInput: input}}
	if status := Serve(h, Typed(fn)); status != statusOK || h.output != want {
		t.Errorf("%s gave %d, %s %s; want %s", input, status, h.output, h.fail, want)
	}
}

// badDetails is an author's own error whose details are not JSON.
type badDetails struct{}

func (badDetails) Error() string { return "broken" }
func (badDetails) Failure() abi.Failure {
	return abi.Failure{Code: "x", Details: json.RawMessage("{")}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]Handler{
		`{"code":"output","message":"output: json: unsupported type: func()","retryable":false}`: Typed(
			func(*Call, struct{}) (func(), error) { return func() {}, nil }),
		`{"message":"broken","retryable":false}`: func(*Call) ([]byte, error) { return nil, badDetails{} },
		`{"message":"plain","retryable":true}`:   func(*Call) ([]byte, error) { return nil, errors.New("plain") },
	}
	for want, fn := range tests {
		h := &scripted{}
		if status := Serve(h, fn); status != statusFailed || h.fail != want {
			t.Errorf("status %d, %s; want %s", status, h.fail, want)
		}
	}
}

func TestUnreadableFields(t *testing.T) {
	t.Parallel()
	var p Plugin
	p.Add("f", Typed(func(*Call, struct{}) (struct{}, error) { return struct{}{}, nil }))
	h := &scripted{readErr: errors.New("gone")}
	p.Serve(h)
	if want := `{"message":"reading the name of the function: gone","retryable":true}`; h.fail != want {
		t.Errorf("got %s", h.fail)
	}
}

func TestEmptyPlugin(t *testing.T) {
	t.Parallel()
	var p Plugin
	h := &scripted{}
	if status := p.WriteManifest(h); status != statusOK || h.output != `{"abi":1,"functions":[]}` {
		t.Errorf("manifest %d %s %s", status, h.output, h.fail)
	}
	p.Serve(h)
	if !strings.Contains(h.fail, `no function \"main\"; it has: none`) {
		t.Errorf("a call gave %s", h.fail)
	}
}

func TestLookupWithoutName(t *testing.T) {
	t.Parallel()
	called := ""
	named := func(name string) Handler {
		return func(*Call) ([]byte, error) { called = name; return []byte("null"), nil }
	}
	var p Plugin
	for _, step := range []struct{ add, want string }{{"a", "a"}, {"b", ""}, {"main", "main"}} {
		p.Add(step.add, named(step.add))
		called = ""
		p.Serve(&scripted{})
		if called != step.want {
			t.Errorf("with %s, no name called %q, want %q", p.names(), called, step.want)
		}
	}
}

// FuzzServe holds that any input ends in exactly one of output and failure,
// both JSON.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{`{"name":"a","count":1,"items":[{"price":1e3}]}`, `[]`, `{"at":1}`, `"\ud800"`, "\xff", ``} {
		f.Add(seed)
	}
	fn := Typed(func(_ *Call, in document) (document, error) { return in, nil })
	f.Fuzz(func(t *testing.T, input string) {
		h := &scripted{fields: map[abi.Field]string{abi.FieldInput: input}}
		status := Serve(h, fn)
		if (status == statusOK) != json.Valid([]byte(h.output)) || (status == statusFailed) != json.Valid([]byte(h.fail)) {
			t.Errorf("status %d, output %q, failure %q", status, h.output, h.fail)
		}
	})
}
