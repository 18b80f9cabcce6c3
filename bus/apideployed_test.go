package bus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// What is deployed comes as a whole, however many answers it takes.
func TestDeployed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := bus.Deployment{Since: at, Fault: &bus.LoadFault{At: at.Add(time.Minute), Problems: []string{"a.hcl:1: what"}}}
	long := strings.Repeat("x", 1<<20)
	for i := range 20 {
		want.Flows = append(want.Flows, bus.DeployedFlow{
			Flow: fmt.Sprintf("f%02d", i), Definition: long, Blocks: map[string]string{"task a": "1"},
			Modules: map[string]string{"./a.wasm": "2"}, Rights: []bus.Right{{Task: "a", Right: "read", To: "./data"}},
		})
	}
	dir := t.TempDir()
	server := startServer(t, bus.ServerConfig{Dir: dir, Listen: "127.0.0.1:0"})
	nc := connect(t, server)
	runIntake(t, nc, &starter{}, nil, bus.IntakeConfig{Deployed: func() bus.Deployment { return want }})
	client, err := bus.Dial(t.Context(), bus.DialConfig{Context: dir + "/" + bus.ClientContext})
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
	answer, code := request(t, nc, bus.APISubject(bus.VerbDeployed), `{"after":"f19"}`, nil)
	if !strings.HasSuffix(answer, `"flows":[]}`) || code != "" {
		t.Errorf("after the last one: %s, %s", answer, code)
	}
	if _, code := request(t, nc, bus.APISubject(bus.VerbDeployed), `{"flow":"f01"}`, nil); code != run.RequestPayload {
		t.Errorf("a field that is not known: %q", code)
	}
}
