package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

const boundedHCL = `
flow "f" {
  param "p" {
    type    = any
    default = 1
  }
  trigger "schedule" "hourly" { every = "1h" }
  wait "go" { signal = true }
  wait "ok" { approval = "?" }
}`

// Every way in refuses JSON that nobody could be shown, with a typed error, and the
// host takes what comes next.
func TestJSONIsBoundedAtEveryDoor(t *testing.T) {
	t.Parallel()
	set := load(t, boundedHCL)
	deep := json.RawMessage(strings.Repeat("[", 9985) + strings.Repeat("]", 9985))
	params := map[string]json.RawMessage{"p": deep}
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		ctx := t.Context()
		good := run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Payload: json.RawMessage(`{"p":[1]}`)}}
		bad := good
		bad.Trigger.Payload = deep
		receipt, err := r.Submit(ctx, good)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		schedule := run.ScheduleRef{Flow: "f", Trigger: "hourly"}
		for name, door := range map[string]struct {
			ask  func() error
			code string
		}{
			"submit": {func() error { _, err := r.Submit(ctx, bad); return err }, run.RequestPayload},
			"batch": {func() error {
				decided, err := r.SubmitBatch(ctx, []run.Request{good, good, bad, good})
				if decided != 2 {
					t.Errorf("%d of a batch are decided, want the 2 before the bad one", decided)
				}
				return err
			}, run.RequestPayload},
			"params": {func() error { _, err := r.Submit(ctx, run.Request{Flow: "f", Params: params}); return err }, run.RequestParams},
			"fire":   {func() error { _, err := r.Fire(ctx, schedule, run.Request{Params: params}); return err }, run.RequestParams},
			"again": {func() error {
				_, err := r.Retry(ctx, receipt.Run, run.RerunOptions{Whole: true, Params: params})
				return err
			}, run.RequestParams},
			"signal":  {func() error { return r.Signal(ctx, receipt.Run, "go", deep) }, run.RequestPayload},
			"approve": {func() error { return r.Approve(ctx, receipt.Run, "ok", run.Approval{Approved: true, Payload: deep}) }, run.RequestPayload},
		} {
			err := door.ask()
			if wrong := (*run.RequestError)(nil); !errors.As(err, &wrong) || wrong.Code != door.code {
				t.Errorf("%s: %v, want a request error %q", name, err, door.code)
			}
		}
		r.signal(receipt.Run, "go", `[[1]]`)
		r.approve(receipt.Run, "ok", run.Approval{Approved: true})
		if record, err := r.Wait(ctx, receipt.Run); err != nil || record.State != run.Succeeded {
			t.Errorf("the run that was accepted: %v, %v", record, err)
		}
		r.kill()
		<-r.ended
	})
}
