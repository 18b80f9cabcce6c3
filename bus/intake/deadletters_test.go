package intake_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// letterbox is a host with dead letters, and its operator.
type letterbox struct {
	t        *testing.T
	nc       *nats.Conn
	starter  *bustest.Starter
	operator *api.Client
	client   *api.Client

	mu      sync.Mutex
	refuses error // guarded by mu; what the engine answers
}

func newLetterbox(t *testing.T) *letterbox {
	t.Helper()
	b := &letterbox{t: t, refuses: run.Requestf(run.RequestParams, "not now")}
	b.starter = &bustest.Starter{OnSubmit: func(run.Request) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.refuses
	}}
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	b.nc = bustest.Connect(t, server)
	bustest.RunIntake(t, b.nc, b.starter, []intake.Subscription{{Flow: "orders", Trigger: "new", Subject: "shop.>"}}, intake.Config{Operator: natsd.AccountOperator})
	b.client = dialHost(t, server, dir)
	var err error
	if b.operator, err = api.Dial(t.Context(), api.DialConfig{Context: dir + "/" + natsd.OperatorContext}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.operator.Close)
	return b
}

func (b *letterbox) answer(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = err
}

// letters waits for so many, newest first.
func (b *letterbox) letters(n int) []api.DeadLetter {
	b.t.Helper()
	var letters []api.DeadLetter
	bustest.Eventually(b.t, fmt.Sprintf("%d dead letters", n), func() bool {
		var err error
		letters, _, err = b.operator.DeadLetters(b.t.Context(), "", 0, 0)
		return err == nil && len(letters) == n
	})
	return letters
}

func (b *letterbox) publish(subject, data string, header nats.Header) {
	b.t.Helper()
	if err := b.nc.PublishMsg(&nats.Msg{Subject: subject, Data: []byte(data), Header: header}); err != nil {
		b.t.Fatal(err)
	}
}

// A dead letter is sent as the request that it was: to the same trigger, with its own
// headers, and with a key that makes one run of it.
func TestSendDeadLetter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		subject, data string
		header        nats.Header
		want          run.Request
	}{
		"message of a trigger": {"shop.a", `{"n":1}`, nats.Header{"X-Source": {"shop"}, run.HeaderHops: {"3"}, "Nats-Msg-Id": {"1"}, bus.HeaderTrigger: {"forged"}}, run.Request{
			Flow: "orders", Trigger: run.Trigger{Kind: run.TriggerMessage, Name: "new", Subject: "shop.a", Headers: map[string][]string{"X-Source": {"shop"}}, Payload: json.RawMessage(`{"n":1}`)},
		}},
		"message to the flow": {"fh.v1.trigger.orders", "", nil, run.Request{
			Flow: "orders", Trigger: run.Trigger{Kind: run.TriggerMessage, Subject: "fh.v1.trigger.orders", Payload: json.RawMessage("null")},
		}},
		"request": {"fh.v1.api.run.orders", "1", nats.Header{bus.HeaderParams: {`{"a":2}`}, bus.HeaderKey: {"mine"}}, run.Request{
			Flow: "orders", Key: "mine", Params: map[string]json.RawMessage{"a": json.RawMessage("2")},
			Trigger: run.Trigger{Kind: run.TriggerManual, Subject: "fh.v1.api.run.orders", Headers: map[string][]string{bus.HeaderKey: {"mine"}}, Payload: json.RawMessage("1")},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLetterbox(t)
			b.publish(c.subject, c.data, c.header)
			letter := b.letters(1)[0]
			if _, err := b.operator.SendDeadLetter(t.Context(), letter.Sequence); codeOf(err) != run.RequestParams {
				t.Fatalf("while it is refused: %v", err)
			}
			b.letters(1) // it stays, and is the only one
			b.answer(nil)
			receipt, err := b.operator.SendDeadLetter(t.Context(), letter.Sequence)
			if err != nil || receipt.Run != bustest.RunID {
				t.Fatalf("%+v, %v", receipt, err)
			}
			b.letters(0)
			if c.want.Key == "" {
				c.want.Key = fmt.Sprintf("deadletter/%d/%d", letter.Sequence, letter.At.UnixNano())
			}
			c.want.Trigger.Time = letter.At
			if diff := cmp.Diff([]run.Request{c.want}, b.starter.Accepted()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if _, err := b.operator.SendDeadLetter(t.Context(), letter.Sequence); codeOf(err) != api.CodeUnknownDeadLetter {
				t.Errorf("once it is gone: %v", err)
			}
		})
	}
}

// Two who send the same dead letter get the same run.
func TestSendDeadLetterTwice(t *testing.T) {
	t.Parallel()
	b := newLetterbox(t)
	b.publish("shop.a", "1", nil)
	letter := b.letters(1)[0]
	b.answer(nil)
	var sending sync.WaitGroup
	for range 8 {
		sending.Go(func() {
			receipt, err := b.operator.SendDeadLetter(t.Context(), letter.Sequence)
			if receipt.Run != bustest.RunID && codeOf(err) != api.CodeUnknownDeadLetter {
				t.Errorf("%+v, %v", receipt, err)
			}
		})
	}
	sending.Wait()
	if n := len(b.starter.Accepted()); n != 1 {
		t.Errorf("%d runs", n)
	}
	b.letters(0)
}

func TestDeadLetterThatCannotBeSent(t *testing.T) {
	t.Parallel()
	b := newLetterbox(t)
	own := func(name, value string) nats.Header {
		return nats.Header{bus.HeaderCode: {"payload"}, bus.HeaderReason: {"x"}, bus.HeaderSubject: {"shop.a"}, name: {value}}
	}
	subject := bus.DeadLetterSubject("orders")
	b.publish(subject, "1", own(bus.HeaderForWait, "R/paid"))
	b.publish(subject, "", own(bus.HeaderNoBody, "9000000"))
	b.publish(subject, "1", own("X", "y")) // of no known trigger
	b.publish(subject, "", nil)
	b.answer(nil)
	for _, letter := range b.letters(4) {
		if _, err := b.operator.SendDeadLetter(t.Context(), letter.Sequence); codeOf(err) != api.CodeNotSendable {
			t.Errorf("%+v: %v", letter, err)
		}
		if _, err := b.operator.DeadLetter(t.Context(), letter.Sequence); err != nil {
			t.Errorf("%+v cannot be shown: %v", letter, err)
		}
	}
	if n := b.starter.Attempts(); n != 0 {
		t.Errorf("%d requests reached the engine", n)
	}
	b.letters(4)
}

// A message that the trigger's filter rejects starts no run, and is not lost by that.
func TestDeadLetterThatIsFiltered(t *testing.T) {
	t.Parallel()
	b := newLetterbox(t)
	b.publish("shop.a", `"filtered"`, nil)
	letter := b.letters(1)[0]
	b.answer(nil)
	if receipt, err := b.operator.SendDeadLetter(t.Context(), letter.Sequence); err != nil || receipt.Run != "" || receipt.Accepted {
		t.Errorf("%+v, %v", receipt, err)
	}
	b.letters(1)
}

func TestDiscardDeadLetter(t *testing.T) {
	t.Parallel()
	b := newLetterbox(t)
	b.publish("shop.a", "1", nil)
	b.publish("shop.b", "2", nil)
	letters := b.letters(2)
	for _, err := range []error{b.operator.DiscardDeadLetter(t.Context(), letters[0].Sequence), b.operator.DiscardDeadLetter(t.Context(), letters[1].Sequence)} {
		if err != nil {
			t.Error(err)
		}
	}
	b.letters(0)
	for _, sequence := range []uint64{0, letters[0].Sequence, 1 << 60} {
		want := api.CodeUnknownDeadLetter
		if sequence == 0 {
			want = run.RequestParams
		}
		if err := b.operator.DiscardDeadLetter(t.Context(), sequence); codeOf(err) != want {
			t.Errorf("%d: %v, want %s", sequence, err, want)
		}
	}
}

// Dead letters are the operator's, whatever the permissions of an external server are.
func TestDeadLettersAreTheOperators(t *testing.T) {
	t.Parallel()
	b := newLetterbox(t)
	b.publish("shop.a", "1", nil)
	letter := b.letters(1)[0]
	for verb, body := range map[string]string{api.VerbDeadLetters: "{}", api.VerbSendDeadLetter: `{"sequence":1}`, api.VerbDiscardDeadLetter: `{"sequence":1}`} {
		header := nats.Header{"Nats-Request-Info": {`{"acc":"CLIENT","id":7}`}}
		if answer, code := bustest.Request(t, b.nc, bus.APISubject(verb), body, header); code != api.CodeDenied {
			t.Errorf("%s: %s", verb, answer)
		}
	}
	if _, _, err := b.client.DeadLetters(t.Context(), "", 0, 0); codeOf(err) != api.CodeDenied {
		t.Errorf("a client: %v", err)
	}
	if b.letters(1)[0].Sequence != letter.Sequence {
		t.Error("the dead letter is another one")
	}
}

// Anybody can store odd messages in a stream of a shared account: they are listed, and
// hide none of the others.
func TestDamagedDeadLetters(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	e.Start()
	nc := e.Connect(new(bustest.LogLines), e.Address())
	if err := bustest.ProvisionAll(t, nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", e.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	fmt.Fprint(raw, "CONNECT {\"verbose\":false,\"headers\":true,\"lang\":\"test\"}\r\n")
	odd := []string{
		"NATS/1.0\r\nno colon\r\n\r\n", "NATS/1.0\r\n: nameless\r\n\r\n", "NATS/1.0\r\nFh-No-Body: -7\r\nFh-Code: \xff\xfe\r\n\r\n", "NATS/1.0 oops\r\n\r\n",
		"NATS/1.0\r\nFh-For-Wait: x\r\n\r\n", "NATS/1.0\r\nFh-Reason: " + strings.Repeat("é", 200) + "\r\n\r\n", "NATS/1.0\r\nFh-Subject: fh.v1.api.run.\r\nFh-Params: 7\r\n\r\n",
	}
	for _, header := range odd {
		fmt.Fprintf(raw, "HPUB fh.v1.deadletter.orders %d %d\r\n%s\xff\x00\r\n", len(header), len(header)+2, header)
	}
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{})
	client, err := api.Dial(t.Context(), api.DialConfig{URL: "nats://" + e.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var letters []api.DeadLetter
	bustest.Eventually(t, "all are listed", func() bool {
		letters, _, err = client.DeadLetters(t.Context(), "", 0, 0)
		return err == nil && len(letters) == len(odd)
	})
	for _, letter := range letters {
		if _, err := client.DeadLetter(t.Context(), letter.Sequence); err != nil {
			t.Errorf("%+v cannot be shown: %v", letter, err)
		}
		if _, err := client.SendDeadLetter(t.Context(), letter.Sequence); codeOf(err) == "" {
			t.Errorf("%+v is sent: %v", letter, err)
		}
		if err := client.DiscardDeadLetter(t.Context(), letter.Sequence); err != nil {
			t.Errorf("%+v cannot be discarded: %v", letter, err)
		}
	}
}
