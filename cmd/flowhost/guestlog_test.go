package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/internal/testkit/gobuild"
	"github.com/flowhost/flowhost/run"
)

// openTestLogs gives the logs on an embedded server.
func openTestLogs(t *testing.T, cfg tasklog.Config) (*tasklog.Store, *nats.Conn) {
	t.Helper()
	server, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	nc, err := server.ConnectEngine()
	if err == nil {
		err = bus.Provision(t.Context(), nc, bus.StreamConfig{})
	}
	if err != nil {
		t.Fatal(err)
	}
	logs, err := tasklog.New(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return logs, nc
}

// loggingHost gives a host whose guests' lines go to lines, and a reactor and a
// command that write some.
func loggingHost(t *testing.T, lines *serve.GuestLines) (h *host.Host, tasks, command string) {
	t.Helper()
	h, err := host.New(t.Context(), host.Config{CacheDir: filepath.Join(gobuild.ModuleCache(), "flowhost"), Lines: lines.Write, CompileCommand: serve.CompileCommand()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	digests := make([]string, 2)
	for i, dir := range []string{"../../host/testdata/guests/tasks", "testdata/guests/text-cmd"} {
		file := filepath.Join(t.TempDir(), "guest.wasm")
		if err := gobuild.Guest(t.Context(), dir, file); err != nil {
			t.Fatal(err)
		}
		signature, err := h.Signature(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = signature.Digest
	}
	return h, digests[0], digests[1]
}

func TestGuestLines(t *testing.T) {
	t.Parallel()
	lines := &serve.GuestLines{}
	h, tasks, command := loggingHost(t, lines)
	t.Run("stored", func(t *testing.T) { testLinesAreStored(t, h, lines, tasks, command) })
	t.Run("waited for by nobody", func(t *testing.T) { testNobodyWaitsForLogs(t, h, lines, tasks) })
}

// What guests write is found in the logs, line for line.
func testLinesAreStored(t *testing.T, h *host.Host, lines *serve.GuestLines, tasks, command string) {
	logs, _ := openTestLogs(t, tasklog.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	var storing sync.WaitGroup
	storing.Go(func() { logs.Run(ctx) })
	defer storing.Wait()
	defer cancel()
	lines.Logs.Store(logs)
	if err := logs.Flush(t.Context()); err != nil { // Run is at work then
		t.Fatal(err)
	}
	now := time.Now()
	id := run.NewID(now)
	for _, call := range []run.Call{
		{Task: "logs", Attempt: 1, Module: tasks, Function: "logs"},
		{Task: "logs", Attempt: 2, Module: tasks, Function: "logs"},
		{Task: "panics", Attempt: 1, Module: tasks, Function: "panics"},
		{Task: "command", Attempt: 1, Module: command},
	} {
		call.Run, call.Flow, call.Input = id, "orders", json.RawMessage(`"x"`)
		result, err := h.Invoke(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		finished := time.Now()
		of := &run.Record{Run: id, Flow: "orders", State: run.Succeeded, CreatedAt: now, FinishedAt: &finished}
		var stored []run.LogLine
		err = logs.Read(t.Context(), of, run.LogQuery{Task: call.Task, Attempt: call.Attempt}, "", false, func(e run.LogEntry, _ string) bool {
			if e.At.Before(now.Truncate(time.Microsecond)) || e.At.After(finished) {
				t.Errorf("%s: a line of %s, the call lasted from %s to %s", call.Task, e.At, now, finished)
			}
			stored = append(stored, e.LogLine)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(result.Log.Lines, stored); diff != "" || len(stored) == 0 {
			t.Errorf("%s (-result +stored):\n%s", call.Task, diff)
		}
	}
}

// A server that takes nothing, and one that is gone, cost lines and no time.
func testNobodyWaitsForLogs(t *testing.T, h *host.Host, lines *serve.GuestLines, tasks string) {
	logs, nc := openTestLogs(t, tasklog.Config{Buffer: 4 << 10})
	flood := func() time.Duration {
		started := time.Now()
		for n := range 20 {
			call := run.Call{
				Run: run.NewID(time.Now()), Flow: "orders", Task: "floods", Attempt: n + 1,
				Module: tasks, Function: "floods", Input: json.RawMessage("2000"),
			}
			result, err := h.Invoke(t.Context(), call)
			if err != nil || result.Outcome != run.OutcomeSucceeded {
				t.Fatal(result.Failure, err)
			}
		}
		return time.Since(started)
	}
	lines.Logs.Store(nil)
	alone := flood()
	lines.Logs.Store(logs)
	unread := flood() // nobody stores anything
	nc.Close()
	ended := make(chan error, 1)
	go func() { ended <- logs.Run(t.Context()) }()
	gone := flood()
	if err := <-ended; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Run = %v", err)
	}
	if limit := 5*alone + time.Second; unread > limit || gone > limit {
		t.Errorf("%s without logs, %s when nobody stores them, %s without a server", alone, unread, gone)
	}
}
