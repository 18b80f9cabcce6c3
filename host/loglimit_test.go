package host_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestLogOfAReactor(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	result := invoke(t, h, callOf(load(t, h, guest(t, "tasks")), "logs", "1"))
	want := run.Log{Lines: []run.LogLine{
		{Level: "debug", Message: "level 0", Fields: []byte(`{"n":0}`)},
		{Level: "info", Message: "level 1", Fields: []byte(`{"n":1}`)},
		{Level: "warn", Message: "level 2", Fields: []byte(`{"n":2}`)},
		{Level: "error", Message: "level 3", Fields: []byte(`{"n":3}`)},
		{Level: "info", Message: "on stdout"},
		{Level: "info", Message: "on stderr"},
	}}
	if diff := cmp.Diff(want, result.Log); diff != "" {
		t.Error(diff)
	}
}

func TestLogOfACommand(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	result := invoke(t, h, callOf(load(t, h, guest(t, "command")), "main", `"exit 75"`))
	want := run.Log{Lines: []run.LogLine{{Level: "info", Message: "first"}, {Level: "info", Message: "last words"}}}
	if diff := cmp.Diff(want, result.Log); diff != "" {
		t.Error(diff)
	}
}

func TestLogFloodKeepsBeginningAndEnd(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Limits: run.Limits{Log: 1 << 10}})
	log := invoke(t, h, callOf(load(t, h, guest(t, "tasks")), "floods", "10000")).Log
	if len(log.Lines) == 0 || len(log.Lines)+log.Dropped != 10000 {
		t.Fatalf("%d lines and %d dropped, of 10000", len(log.Lines), log.Dropped)
	}
	first, last, bytes := log.Lines[0].Message, log.Lines[len(log.Lines)-1].Message, 0
	for _, line := range log.Lines {
		bytes += len(line.Message)
	}
	if first != "line 0" || last != "line 9999" || bytes > 1<<10 {
		t.Errorf("from %q to %q, %d bytes", first, last, bytes)
	}
}
