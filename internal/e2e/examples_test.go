package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

// TestExamples serves all examples together, as "make run" does.
func TestExamples(t *testing.T) {
	t.Parallel()
	h := serve(t, built.examples, "--nats-listen", "127.0.0.1:0")
	c, operator := h.client(), h.operator()
	tests := []struct {
		name string
		test func(*testing.T, *client, *client)
	}{
		{"orders", testOrders},
		{"order without waiting", testOrderWithoutWaiting},
		{"invalid order", testInvalidOrder},
		{"filtered order", testFilteredOrder},
		{"order that is no order", testMalformedOrders},
		{"hello by request", testHello},
		{"diamond with a param", testDiamond},
		{"tzdb", testZones},
		{"nightly", testNightly},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.test(t, c.with(t), operator.with(t))
		})
	}
}

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built.examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type ticket struct {
	Ticket   string      `json:"ticket"`
	Order    string      `json:"order"`
	Customer string      `json:"customer"`
	Queue    string      `json:"queue"`
	Status   string      `json:"status"`
	Total    json.Number `json:"total"`
}

func testOrders(t *testing.T, c, _ *client) {
	tests := []struct {
		order       string
		want        ticket
		taken, left string // tasks
	}{
		{"small", ticket{Order: "o-1001", Customer: "ada", Status: "approved", Total: "154.9"}, "auto_approve", "manual_review"},
		{"large", ticket{Order: "o-1002", Customer: "grace", Status: "pending", Queue: "sales", Total: "12600"}, "manual_review", "auto_approve"},
	}
	for _, test := range tests {
		r := c.result("orders.created", example(t, "orders/"+test.order+".json"))
		if r.State != "succeeded" || r.Flow != "orders/order_received" || r.Trigger.Kind != "message" || r.Trigger.Name != "created" {
			t.Errorf("%s: %+v", test.order, r)
		}
		got := decode[struct{ Ticket ticket }](t, r.Output).Ticket
		if !strings.HasPrefix(got.Ticket, "T-") {
			t.Errorf("%s: ticket number %q", test.order, got.Ticket)
		}
		got.Ticket = ""
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: ticket (-want +got):\n%s", test.order, diff)
		}
		taken, left := r.task(t, test.taken), r.task(t, test.left)
		if taken.State != "succeeded" || taken.Attempts != 1 || left.State != "skipped" || left.Attempts != 0 {
			t.Errorf("%s: %+v %+v", test.order, taken, left)
		}
	}
}

func testOrderWithoutWaiting(t *testing.T, c, _ *client) {
	follow := c.follow(`{"flow":"orders/order_received","kinds":["finished"]}`)
	id := c.submit("orders.created", `{"id":"o-7","customer":"alan","items":[{"sku":"A","quantity":1,"price":5}],"total":5}`)
	all := follow.finished(id)
	if last := all[len(all)-1]; last.Record == nil || last.Record.State != "succeeded" {
		t.Errorf("%+v", last)
	}
}

func testInvalidOrder(t *testing.T, c, _ *client) {
	r := c.result("orders.created", example(t, "orders/invalid.json"))
	if r.State != "failed" || r.Error == nil || r.Error.Code != "invalid_order" || r.Error.Task != "price" || r.Error.Outcome != "failed" {
		t.Fatalf("%s %+v", r.State, r.Error)
	}
	if !strings.HasPrefix(r.Error.At, "orders.hcl:") || !strings.Contains(string(r.Error.Details), "quantity") {
		t.Errorf("the failure does not say where and what: %+v %s", r.Error, r.Error.Details)
	}
	if price, alert := r.task(t, "price"), r.task(t, "alert"); price.Attempts != 1 || alert.State != "succeeded" {
		t.Errorf("price %+v, alert %+v", price, alert)
	}
}

func testFilteredOrder(t *testing.T, c, _ *client) {
	answer := c.request("orders.created", `{"id":"o-8","customer":"alan","items":[],"total":0}`, waiting())
	if got := string(answer.Data); got != `{"run":null,"accepted":false}` || answer.Header.Get("Nats-Service-Error-Code") != "" {
		t.Errorf("%s %v", got, answer.Header)
	}
}

func testMalformedOrders(t *testing.T, c, operator *client) {
	tests := []struct {
		name, body string
		code       string
		says       string
	}{
		{"no JSON", `{"id":"o-9",`, "payload", "not JSON"},
		{"empty", ``, "expression", "orders.hcl:"},
		{"wrong type of total", `{"customer":"alan","total":"much"}`, "expression", "orders.hcl:"},
		{"no total", `{"customer":"alan"}`, "expression", "total"},
		{"customer is an object", `{"customer":{},"total":1}`, "expression", "key"},
		{"no object", `[1,2]`, "expression", "orders.hcl:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := waiting()
			header.Set("X-Case", test.name)
			answer := c.with(t).request("orders.created", test.body, header)
			checkFault(t, answer, test.code, test.says)

			letter := operator.with(t).deadLetter("orders/order_received", "X-Case", test.name)
			if string(letter.Body) != test.body || letter.Subject != "orders.created" || letter.Code != test.code || letter.Size != len(test.body) {
				t.Errorf("dead letter %+v", letter)
			}
			if got := letter.Reason; !strings.Contains(got, test.says) {
				t.Errorf("reason %q, want one with %q", got, test.says)
			}
		})
	}
}

// checkFault holds an answer against an error's code and a part of its message,
// in the headers of the NATS micro protocol and in the body.
func checkFault(t *testing.T, answer *nats.Msg, code, says string) {
	t.Helper()
	body := decode[struct{ Error failure }](t, answer.Data).Error
	if got := answer.Header.Get("Nats-Service-Error-Code"); got != code || body.Code != code {
		t.Errorf("code %q, in the body %q, want %q: %s", got, body.Code, code, answer.Data)
	}
	if got := answer.Header.Get("Nats-Service-Error"); !strings.Contains(got, says) || got != body.Message {
		t.Errorf("message %q, in the body %q, want one with %q", got, body.Message, says)
	}
}

type deadLetter struct {
	Sequence                          uint64
	Flow, Subject, Code, Reason, Body string
	Size                              int
	Headers                           map[string][]string
}

// deadLetter asks for the message of a flow that has the header.
func (c *client) deadLetter(flow, name, value string) deadLetter {
	c.t.Helper()
	list := verb[struct{ DeadLetters []deadLetter }](c, "deadletters", fmt.Sprintf(`{"flow":%q}`, flow), nil)
	for _, l := range list.DeadLetters {
		l = verb[deadLetter](c, "deadletters", fmt.Sprintf(`{"get":%d}`, l.Sequence), nil)
		if l.Flow == flow && slices.Contains(l.Headers[name], value) {
			return l
		}
	}
	c.t.Fatalf("no dead letter of flow %s with %s: %s", flow, name, value)
	return deadLetter{}
}

func testHello(t *testing.T, c, _ *client) {
	r := c.result("fh.v1.api.run.hello/hello", "")
	if got := string(r.Output); got != `{"greet":{"text":"Hello, world!"}}` || r.Trigger.Kind != "manual" {
		t.Errorf("%s %+v", got, r.Trigger)
	}
}

func testDiamond(t *testing.T, c, operator *client) {
	r := c.result("fh.v1.api.run.diamond/diamond", `{"limit":10000}`)
	got := decode[struct{ Primes, Largest int }](t, r.Output)
	if got.Primes != 1229 || got.Largest != 9973 || string(r.Params["limit"]) != "10000" { // OEIS A006880
		t.Errorf("%s of %s", r.Output, r.Params)
	}
	answer := c.request("fh.v1.api.run.diamond/diamond", `{"limit":"many"}`, nats.Header{"X-Case": {"limit"}})
	checkFault(t, answer, "params", "limit")
	if letter := operator.deadLetter("diamond/diamond", "X-Case", "limit"); letter.Code != "params" {
		t.Errorf("%+v", letter)
	}
}

// testNightly copies what has changed since the last time: all tables, then none.
func testNightly(t *testing.T, c, _ *client) {
	for _, copies := range []int{4, 0} {
		r := c.result("fh.v1.api.run.nightly/nightly", `null`)
		if r.State != "succeeded" || string(r.Output) != `{"notify":{"by":"chat"}}` {
			t.Fatalf("%s: %s", r.State, r.Output)
		}
		items := 0
		for _, task := range r.Tasks {
			switch {
			case task.Task == "copy" && task.Key != nil:
				items++
			case task.Task == "mail" && task.State != "skipped":
				t.Errorf("mail is %s", task.State)
			}
		}
		if items != copies {
			t.Errorf("%d tables are copied, want %d", items, copies)
		}
	}
}

// testZones checks figures that examples/tzdb/README.md computes with awk and
// sort.
func testZones(t *testing.T, c, _ *client) {
	type row struct {
		Region    string
		Zones     int
		Countries int
		Commented int
		Extremes  map[string]struct{ Zone string }
	}
	report := decode[struct {
		Totals   row
		Regions  []row
		Markdown string
	}](t, c.result("tzdb.report", "{}").Output)

	world := report.Totals
	if world.Zones != 312 || world.Countries != 247 || world.Commented != 201 {
		t.Errorf("%+v", world)
	}
	extremes := map[string]string{"north": "America/Danmarkshavn", "south": "Antarctica/Vostok", "east": "Pacific/Fiji", "west": "America/Adak"}
	for side, zone := range extremes {
		if got := world.Extremes[side].Zone; got != zone {
			t.Errorf("%s: %s, want %s", side, got, zone)
		}
	}
	want := map[string][3]int{"Africa": {19, 56, 3}, "America": {121, 53, 98}, "Antarctica": {8, 2, 8}}
	for _, r := range report.Regions {
		if figures, known := want[r.Region]; known && figures != [3]int{r.Zones, r.Countries, r.Commented} {
			t.Errorf("%+v, want %v", r, figures)
		}
	}
	if len(report.Regions) != 9 || report.Regions[0].Region != "America" || !strings.Contains(report.Markdown, "\n| World | 312 | 247 |") {
		t.Errorf("%d regions, the first is %q; %q", len(report.Regions), report.Regions[0].Region, report.Markdown)
	}
}
