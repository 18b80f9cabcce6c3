package tasklog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// storedMsg is a message as a consumer hands it over.
type storedMsg struct {
	jetstream.Msg
	header nats.Header
	data   []byte
}

func (m storedMsg) Headers() nats.Header { return m.header }

func (m storedMsg) Data() []byte { return m.data }

// Whatever a line holds, it fits into the messages of the server, and the others
// beside it are whole.
func TestLogMessagesFit(t *testing.T) {
	t.Parallel()
	const limit = 60 << 10
	big := json.RawMessage(`{"x":"` + strings.Repeat("y", 2*limit) + `"}`)
	b := &logBatch{logAttempt: logAttempt{flow: "orders", run: "01ARZ3NDEKTSV4RRFFQ69G5FAV", task: "price", attempt: 3}}
	for _, line := range []run.LogLine{
		{Level: "info", Message: "first"},
		{Level: "info", Message: strings.Repeat("\x01", 2*limit)},
		{Level: "info", Message: strings.Repeat("€", limit), Fields: big},
		{Level: "info", Message: "no JSON", Fields: json.RawMessage("{")},
		{Level: "info", Message: "last"},
	} {
		b.push(time.Now(), line)
	}
	cost := b.bytes + logBatchCost
	filter, err := newLogFilter("orders", run.LogQuery{Run: b.run, Task: "price", Attempt: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []run.LogEntry
	for len(b.lines) > 0 {
		m := b.next("id", limit)
		cost -= m.cost
		if len(m.Data) > limit {
			t.Errorf("a message of %d bytes", len(m.Data))
		}
		if !filter.selects(m.Header) {
			t.Errorf("the message is not found by its headers %v", m.Header)
		}
		got = append(got, filter.decode(storedMsg{header: m.Header, data: m.Data})...)
	}
	if len(got) != 5 || got[0].Message != "first" || got[3].Message != "no JSON" || got[4].Message != "last" || got[4].Attempt != 3 {
		t.Fatalf("%d lines", len(got))
	}
	for _, e := range got[1:3] {
		if !strings.HasSuffix(e.Message, "…") || !utf8.ValidString(e.Message) || len(e.Message) > limit {
			t.Errorf("%d bytes that end with %q", len(e.Message), e.Message[len(e.Message)-5:])
		}
	}
	if string(got[2].Fields) != `{"bytes_left_out":122888}` {
		t.Errorf("fields %s", got[2].Fields)
	}
	if cost != 0 {
		t.Errorf("%d bytes of the buffer are not freed", cost)
	}
}

// Clients can make the server answer on any subject: what is not ours is passed
// over.
func FuzzLogDecode(f *testing.F) {
	f.Add("1", []byte(`{"key":"eu","lines":[{"t":1767323045025123,"l":"info","m":"counted","f":{"words":6}}]}`))
	f.Add("0", []byte(`{"lines":null}`))
	f.Add("x", []byte(`{"type":"io.nats.jetstream.api.v1.consumer_create_response"}`))
	f.Fuzz(func(t *testing.T, attempt string, data []byte) {
		filter := logFilter{flow: "orders"}
		header := nats.Header{bus.HeaderAttempt: {attempt}}
		for _, e := range filter.decode(storedMsg{header: header, data: data}) {
			if _, err := json.Marshal(e); err != nil && e.At.Year() < 10_000 && e.At.Year() >= 0 {
				t.Errorf("an entry that cannot be told: %v", err)
			}
		}
	})
}

func FuzzLogCursor(f *testing.F) {
	f.Add("17.3")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		cursor, err := parseLogCursor(text)
		if err != nil || text == "" {
			return
		}
		if again, err := parseLogCursor(cursor.String()); err != nil || again != cursor {
			t.Errorf("%q is %+v, and again %+v, %v", text, cursor, again, err)
		}
	})
}
