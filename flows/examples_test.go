package flows

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

func examples(t *testing.T) *Set {
	t.Helper()
	set, diags := Load(t.Context(), []string{"testdata/examples"}, Options{Catalog: catalog{
		"greet.wasm": {"greet"}, "pricing.wasm": {"main", "approve"}, "review.wasm": {"review"}, "notify.wasm": {"notify"},
	}})
	if len(diags) > 0 {
		t.Fatal(text(set, diags))
	}
	return set
}

func TestHelloExample(t *testing.T) {
	t.Parallel()
	f := examples(t).Flow("hello")
	task := f.Tasks[0]
	if got := input(t, task, f.Scope(aRun(f, "", nil))); got != `{"name":"world"}` {
		t.Error(got)
	}
	want := Plugin{Source: "./greet.wasm", Digest: digestOf("greet.wasm")}
	if task.Plugin != want || task.Function != "greet" || task.At() != "hello.hcl:2" {
		t.Errorf("%+v %s %s", task.Plugin, task.Function, task.At())
	}
}

func TestOrderReceivedExample(t *testing.T) {
	t.Parallel()
	f := examples(t).Flow("order_received")

	price := f.task(t, "price")
	if price.Timeout != 5*time.Second || price.Retry.Attempts != 4 || price.Function != "main" {
		t.Errorf("%+v", price)
	}
	var edges []string
	for _, e := range f.Edges() {
		edges = append(edges, e.From+" "+e.To)
	}
	if diff := cmp.Diff([]string{"price manual_review", "price auto_approve"}, edges); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"price", "manual_review", "auto_approve", "alert"}, taskNames(f)); diff != "" {
		t.Error(diff)
	}

	request := run.Request{Trigger: run.Trigger{Kind: run.TriggerMessage, Name: "created", Payload: json.RawMessage(`{"total": 0, "customer": "c"}`)}}
	if a, err := f.Admit(request); err != nil || a.Accepted {
		t.Errorf("an order without a total: %+v %v", a, err)
	}
	request.Trigger.Payload = json.RawMessage(`{"total": 12000.10, "customer": "c"}`)
	a, err := f.Admit(request)
	if err != nil || !a.Accepted || a.Concurrency != "c" || string(a.Trigger.Payload) != `{"total":12000.10,"customer":"c"}` {
		t.Fatalf("%+v %v", a, err)
	}

	s := f.Scope(aRun(f, string(a.Trigger.Payload), nil))
	if got := input(t, price, s); got != `{"total":12000.10,"customer":"c"}` {
		t.Errorf("the payload is not passed on as it is: %s", got)
	}
	s.Settle(done("price", `{"total":12000.10,"items":[1]}`))
	for name, want := range map[string]bool{"manual_review": true, "auto_approve": false} {
		if got, failure := f.task(t, name).When(s); failure != nil || got != want {
			t.Errorf("%s: %v %v", name, got, failure)
		}
	}
	s.Settle(done("manual_review", `{"id":7,"by":"jo"}`))
	s.Settle(skipped("auto_approve"))
	out, failure := f.Output(s)
	if failure != nil || string(out) != `{"ticket":{"by":"jo","id":7}}` {
		t.Errorf("%s %v", out, failure)
	}
	s.Settle(done("auto_approve", `{"approved":true}`))
	if out, failure := f.Output(s); failure != nil || string(out) != `{"ticket":{"by":"jo","id":7}}` {
		t.Errorf("%s %v", out, failure)
	}

	s.Failed(&run.Failure{Outcome: run.OutcomeFailed, Task: "price", Message: "no \"price\" for <x>"})
	got := input(t, f.task(t, "alert"), s)
	if got != `{"text":"order_received 01JABCDEFGHJKMNPQRSTVWXYZ0: price failed (no \"price\" for <x>)"}` {
		t.Error(got)
	}
}
