package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// record is a run as others see it.
type record struct {
	Run     string                     `json:"run"`
	Flow    string                     `json:"flow"`
	State   string                     `json:"state"`
	Params  map[string]json.RawMessage `json:"params"`
	Trigger struct {
		Kind    string              `json:"kind"`
		Name    string              `json:"name"`
		Time    time.Time           `json:"time"`
		Subject string              `json:"subject"`
		Headers map[string][]string `json:"headers"`
		Payload json.RawMessage     `json:"payload"`
	} `json:"trigger"`
	Output json.RawMessage `json:"output"`
	Error  *failure        `json:"error"`
	Tasks  []taskRecord    `json:"tasks"`
}

type taskRecord struct {
	Key        *string         `json:"key"`
	Task       string          `json:"task"`
	State      string          `json:"state"`
	Outcome    string          `json:"outcome"`
	Attempts   int             `json:"attempts"`
	StartedAt  time.Time       `json:"started_at"`
	FinishedAt time.Time       `json:"finished_at"`
	Output     json.RawMessage `json:"output"`
	Error      *failure        `json:"error"`
}

type failure struct {
	Outcome string          `json:"outcome"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details"`
	Task    string          `json:"task"`
	At      string          `json:"at"`
}

// task gives the record of a task.
func (r *record) task(t testing.TB, name string) taskRecord {
	t.Helper()
	for _, task := range r.Tasks {
		if task.Task == name {
			return task
		}
	}
	t.Fatalf("run %s has no task %q: %+v", r.Run, name, r.Tasks)
	return taskRecord{}
}

// event is one that the program publishes.
type event struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Flow    string    `json:"flow"`
	Run     string    `json:"run"`
	At      time.Time `json:"at"`
	Task    string    `json:"task"`
	Attempt int       `json:"attempt"`
	Outcome string    `json:"outcome"`
	Error   *failure  `json:"error"`
	State   string    `json:"state"`
	Record  *record   `json:"record"`
}

// client is another system's connection.
type client struct {
	t    testing.TB
	nc   *nats.Conn
	js   jetstream.JetStream
	host *host // nil: an external server
}

// client connects as the user that other programs have.
func (h *host) client() *client {
	h.t.Helper()
	return h.connect(h.t, "nats-context.json")
}

// operator connects as the user that may use JetStream, and read the stream of events.
func (h *host) operator() *client {
	h.t.Helper()
	return h.connect(h.t, "nats-operator-context.json")
}

func (h *host) connect(t testing.TB, file string) *client {
	t.Helper()
	at := h.credentials(file)
	c := connect(t, at.URL, nats.UserInfo(at.User, at.Password), nats.CustomInboxPrefix(at.Inbox), nats.NoReconnect())
	c.host = h
	return c
}

type credentials struct {
	URL      string `json:"url"`
	User     string `json:"user"`
	Password string `json:"password"`
	Inbox    string `json:"inbox_prefix"`
}

func (h *host) credentials(file string) credentials {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.data, file))
	var at credentials
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return at
}

func connect(t testing.TB, url string, options ...nats.Option) *client {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, nc: nc, js: js}
}

// with is the same connection for a subtest.
func (c *client) with(t testing.TB) *client { return &client{t: t, nc: c.nc, js: c.js, host: c.host} }

// request asks and gives the answer, whatever it is.
func (c *client) request(subject, body string, header nats.Header) *nats.Msg {
	c.t.Helper()
	answer, err := c.nc.RequestMsg(&nats.Msg{Subject: subject, Data: []byte(body), Header: header}, patience)
	if err != nil {
		c.t.Fatalf("request to %s: %v", subject, err)
	}
	return answer
}

// later asks and gives a channel with the answer, when it comes.
func (c *client) later(subject, body string, header nats.Header) <-chan *nats.Msg {
	c.t.Helper()
	answers := make(chan *nats.Msg, 1)
	inbox := c.nc.NewInbox()
	_, err := c.nc.ChanSubscribe(inbox, answers)
	if err == nil {
		err = c.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: inbox, Data: []byte(body), Header: header})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return answers
}

// waiting is the header that asks for the run's record.
func waiting() nats.Header { return nats.Header{"Fh-Wait": {patience.String()}} }

// result asks for a run and gives its record.
func (c *client) result(subject, body string) *record {
	c.t.Helper()
	return c.decodeRecord(c.request(subject, body, waiting()))
}

func (c *client) decodeRecord(answer *nats.Msg) *record {
	c.t.Helper()
	if code := answer.Header.Get("Nats-Service-Error-Code"); code != "" {
		c.t.Fatalf("the answer is the error %s: %s", code, answer.Data)
	}
	r := decode[record](c.t, answer.Data)
	if r.Run == "" {
		c.t.Fatalf("the answer is no record: %s", answer.Data)
	}
	return &r
}

// submit asks for a run and gives its id.
func (c *client) submit(subject, body string) string {
	c.t.Helper()
	answer := c.request(subject, body, nil)
	id := decode[struct{ Run string }](c.t, answer.Data).Run
	if len(id) != 26 {
		c.t.Fatalf("the answer has no run: %s", answer.Data)
	}
	return id
}

func decode[T any](t testing.TB, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// events gives events one after the other.
type events struct {
	t    testing.TB
	next func() ([]byte, error)
}

// subscribe follows a subject by a core subscription, from now on.
func (c *client) subscribe(subject string) *events {
	c.t.Helper()
	sub, err := c.nc.SubscribeSync(subject)
	if err == nil {
		err = c.nc.Flush()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return &events{c.t, func() ([]byte, error) {
		msg, err := sub.NextMsg(patience)
		if err != nil {
			return nil, err
		}
		return msg.Data, nil
	}}
}

// follow asks for events from the beginning of what the host keeps: those that the
// query, a JSON object, asks for.
func (c *client) follow(query string) *events {
	c.t.Helper()
	ask := decode[map[string]any](c.t, []byte(query))
	var page struct {
		Events []json.RawMessage `json:"events"`
		Next   string            `json:"next"`
		Reset  bool              `json:"reset"`
	}
	return &events{c.t, func() ([]byte, error) {
		for end := time.Now().Add(patience); len(page.Events) == 0; {
			if time.Now().After(end) {
				return nil, fmt.Errorf("nothing within %s", patience)
			}
			body, err := json.Marshal(ask)
			if err != nil {
				return nil, err
			}
			answer := c.request("fh.v1.api.follow", string(body), nats.Header{"Fh-Wait": {"2s"}})
			if code := answer.Header.Get("Nats-Service-Error-Code"); code != "" {
				return nil, fmt.Errorf("follow: %s: %s", code, answer.Data)
			}
			page = decode[struct {
				Events []json.RawMessage `json:"events"`
				Next   string            `json:"next"`
				Reset  bool              `json:"reset"`
			}](c.t, answer.Data)
			if page.Reset {
				return nil, fmt.Errorf("the host has no longer what follows cursor %v", ask["after"])
			}
			ask["after"] = page.Next
		}
		event := page.Events[0]
		page.Events = page.Events[1:]
		return event, nil
	}}
}

// until gives the events up to the first that ok accepts, with it.
func (e *events) until(what string, ok func(event) bool) []event {
	e.t.Helper()
	var all []event
	for {
		data, err := e.next()
		if err != nil {
			e.t.Fatalf("%s: %v, after %d events, the last of them %q", what, err, len(all), kinds(all[max(0, len(all)-20):]))
		}
		one := decode[event](e.t, data)
		all = append(all, one)
		if ok(one) {
			return all
		}
	}
}

// finished gives the events up to the end of a run, of any when id is empty.
func (e *events) finished(id string) []event {
	e.t.Helper()
	return e.until("the end of run "+id, func(v event) bool { return v.Kind == "finished" && (id == "" || v.Run == id) })
}

// attempt waits for the start of an attempt of a task.
func (e *events) attempt(task string, n int) event {
	e.t.Helper()
	all := e.until(fmt.Sprintf("attempt %d of %s", n, task), func(v event) bool {
		return v.Kind == "attempt_started" && v.Task == task && v.Attempt == n
	})
	return all[len(all)-1]
}

// kinds shows events in a form to compare: "attempt_finished price succeeded".
func kinds(all []event) []string {
	var out []string
	for _, e := range all {
		text := e.Kind
		for _, part := range []string{e.Task, e.Outcome, e.State} {
			if part != "" {
				text += " " + part
			}
		}
		out = append(out, text)
	}
	return out
}
