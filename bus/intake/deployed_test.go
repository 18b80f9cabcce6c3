package intake_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// What is deployed comes as a whole, however many answers it takes.
func TestDeployed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := api.Deployment{Since: at, Fault: &api.LoadFault{At: at.Add(time.Minute), Problems: []string{"a.hcl:1: what"}}}
	long := strings.Repeat("x", 1<<20)
	for i := range 20 {
		want.Flows = append(want.Flows, api.DeployedFlow{
			Flow: fmt.Sprintf("f%02d", i), Definition: long, Blocks: map[string]string{"task a": "1"},
			Modules: map[string]string{"./a.wasm": "2"}, Rights: []api.Right{{Task: "a", Right: "read", To: "./data"}},
		})
	}
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	nc := bustest.Connect(t, server)
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{Deployed: func() api.Deployment { return want }})
	client, err := api.Dial(t.Context(), api.DialConfig{Context: dir + "/" + natsd.ClientContext})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got, err := client.Deployed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	answer, code := bustest.Request(t, nc, bus.APISubject(api.VerbDeployed), `{"after":"f19"}`, nil)
	if !strings.HasSuffix(answer, `"flows":[]}`) || code != "" {
		t.Errorf("after the last one: %s, %s", answer, code)
	}
	if _, code := bustest.Request(t, nc, bus.APISubject(api.VerbDeployed), `{"flow":"f01"}`, nil); code != run.RequestPayload {
		t.Errorf("a field that is not known: %q", code)
	}
}
