package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestKilledServer cuts all connections of an API in the middle of 64 operations, again with
// each try. Every operation fails as unreachable after as many tries as the connection
// states, one that may not be repeated after the first, and the host keeps no connection.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	const operations, tries = 64, 3
	var arrived atomic.Int64
	changed := make(chan struct{}, operations*tries)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		changed <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	s := newOutsideStage(ctx, t, newOutside(t), `
flow "asks" {
  task "do" {
    plugin   = "./door.wasm"
    function = "together"
    input    = trigger.payload

    grant {
      connections = [connection.broken]
    }
  }
}
`, fmt.Sprintf(`
connection "broken" {
  type     = "http"
  base_url = %q
  allow    = ["GET,POST /**"]

  retry {
    attempts = %d
    delay    = "10ms"
  }

  limit {
    concurrency = %d
  }
}
`, server.URL, tries, operations))
	if _, err := s.honest(ctx, s.operator, 1); err != nil {
		t.Fatal(err)
	}
	before := s.openFiles()
	for method, most := range map[string]int{"GET": tries, "POST": 1} {
		arrived.Store(0)
		cutting := make(chan struct{})
		go func() {
			defer close(cutting)
			for range most {
				for range operations {
					select {
					case <-changed:
					case <-ctx.Done():
						return
					}
				}
				server.CloseClientConnections()
			}
		}()
		payload, _ := json.Marshal(operation{Kind: "http", Head: fmt.Sprintf(`{"connection":"broken","url":"/x","method":%q}`, method), Times: operations})
		r, err := ask[struct {
			State  string
			Output struct{ Do []string }
		}](ctx, s.operator, "fh.v1.api.run.asks", string(payload), nats.Header{"Fh-Wait": {"60s"}})
		if err != nil || r.State != "succeeded" || len(r.Output.Do) != operations {
			t.Fatalf("%+v %v", r, err)
		}
		<-cutting
		for _, answer := range r.Output.Do {
			if code, _ := codeOf(answer); code != "unreachable" {
				t.Errorf("%s: %s", method, answer)
			}
		}
		if n := arrived.Load(); n != int64(operations*most) {
			t.Errorf("%s: the server got %d requests, want %d", method, n, operations*most)
		}
	}
	for s.openFiles() > before && ctx.Err() == nil {
		waitFor(ctx, askPace)
	}
	if after := s.openFiles(); after > before {
		t.Errorf("the host has %d open files, %d before", after, before)
	}
}

// openFiles is how many files and connections the process has open, 0 where it cannot be
// known.
func (s *stage) openFiles() int {
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process.Pid()))
	if err != nil {
		return 0
	}
	return len(names)
}
