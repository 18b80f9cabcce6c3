package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/run"
)

// canary is in everything that a call of these tests consists of.
const canary = "CANARY"

// A spy looks at all that it can in each phase of its initialization, keeps that
// in its memory, and says it to whoever listens. Each phase has a quarter of the
// memory's only page.
const (
	spyArea  = 1 << 14
	spyField = 1 << 10 // of an area, for each thing that it asks for
)

// Imports of a spy, in their order.
const (
	spyFdRead = iota
	spyPathOpen
	spyFdWrite
	spyRandom
	spyClock
	spyRead // from here on: reactors only
	spyOutput
	spyFail
	spyLog
	spyTimeLeft
	spyShouldStop
)

func spyImports(command bool) []importEntry {
	const wasi, task = "wasi_snapshot_preview1", "flowhost:task/v1"
	params := func(n int) []byte { return []byte(strings.Repeat("\x7f", n)) }
	returns := []byte{i32}
	imports := []importEntry{
		{wasi, "fd_read", signature{params(4), returns}},
		{wasi, "path_open", signature{[]byte{i32, i32, i32, i32, i32, i64, i64, i32, i32}, returns}},
		{wasi, "fd_write", signature{params(4), returns}},
		{wasi, "random_get", signature{params(2), returns}},
		{wasi, "clock_time_get", signature{[]byte{i32, i64, i32}, returns}},
	}
	if command {
		return imports
	}
	return append(imports,
		importEntry{task, "read", signature{params(3), returns}},
		importEntry{task, "output", signature{params(2), returns}},
		importEntry{task, "fail", signature{params(2), returns}},
		importEntry{task, "log", signature{params(5), returns}},
		importEntry{task, "time_left", signature{nil, []byte{i64}}},
		importEntry{task, "should_stop", signature{nil, returns}})
}

// number is an i32.const.
func number(n int) []byte {
	code := []byte{opI32Const}
	for n > 63 || n < -64 {
		code = append(code, byte(n)|0x80)
		n >>= 7
	}
	return append(code, byte(n)&0x7f)
}

// ask calls an import with numbers, and puts what it returns at an address.
func ask(at, function int, args ...int) []byte {
	code := number(at)
	for _, a := range args {
		code = concat(code, number(a))
	}
	store := []byte{opCall, byte(function), 0x36, 2, 0}
	switch function {
	case spyTimeLeft:
		store = []byte{opCall, byte(function), 0x37, 3, 0}
	case spyClock: // its second argument is an i64: the precision
		code = concat(number(at), number(args[0]), []byte{0x42, 0}, number(args[1]))
	case spyPathOpen: // rights are i64
		code = number(at)
		for i, a := range args {
			if i == 5 || i == 6 {
				code = append(code, 0x42, 2) // to read
				continue
			}
			code = concat(code, number(a))
		}
	}
	return concat(code, store)
}

// put writes text at an address.
func put(at int, text string) []byte {
	var code []byte
	for i := range len(text) {
		code = concat(code, number(at+i), number(int(text[i])), []byte{0x3a, 0, 0})
	}
	return code
}

func putWord(at, n int) []byte { return concat(number(at), number(n), []byte{0x36, 2, 0}) }

// spyCalled is the phase after the initialization.
const spyCalled = 3

// look is what a spy does in a phase.
func look(phase int, command bool) []byte {
	base := phase * spyArea
	results, vector := base+15*spyField, base+14*spyField // the last kilobytes
	result := func(n int) int { return results + 16*n }
	buffer := func(n int) int { return base + n*spyField }
	code := concat(
		putWord(vector, buffer(0)), putWord(vector+4, spyField),
		ask(result(0), spyFdRead, 0, vector, 1, vector+8),
		put(vector+64, "in/secret"), // below the descriptor of /
		ask(result(1), spyPathOpen, 3, 0, vector+64, 9, 0, 2, 2, 0, vector+16),
		putWord(vector, buffer(1)),
		ask(result(2), spyFdRead, 4, vector, 1, vector+8),
		ask(result(3), spyRandom, buffer(2), 16),
		ask(result(4), spyClock, 0, buffer(2)+16),
	)
	if command {
		return code
	}
	for field := range 5 {
		code = concat(code, ask(result(5+field), spyRead, field, buffer(3+field), spyField))
	}
	code = concat(code,
		ask(result(10), spyTimeLeft),
		ask(result(11), spyShouldStop))
	if phase == spyCalled {
		return code
	}
	return concat(code,
		put(vector+128, `"said early"`),
		ask(result(12), spyOutput, vector+128, 12),
		put(vector+160, `{"message":"said early"}`),
		ask(result(13), spyFail, vector+160, 24),
		ask(result(14), spyLog, 1, vector+129, 10, 0, 0),
	)
}

// spyOf is a module that looks in its start function, in _initialize and in its
// warm-up. Its function states what they saw, and only then looks itself and says
// that.
func spyOf(command, fresh bool) []byte {
	p := program{imports: spyImports(command), pages: 1, vector: fresh}
	first := len(p.imports)
	p.start = uint64(first)
	phase := func(n int) []byte { return look(n, command) }
	p.functions = []functionEntry{{"", signature{}, phase(0)}}
	write := func(from, length int) []byte {
		const vector = 60000
		if command {
			return concat(putWord(vector, from), putWord(vector+4, length), ask(vector+8, spyFdWrite, 2, vector, 1, vector+12))
		}
		return ask(vector, spyLog, 1, from, length, 0, 0)
	}
	says := concat(write(0, spyCalled*spyArea), phase(spyCalled), put(60000, "\n\n"), write(spyCalled*spyArea, spyArea-spyField))
	if command {
		p.functions = append(p.functions, functionEntry{"_start", signature{}, says})
		return p.bytes()
	}
	p.functions = append(p.functions,
		functionEntry{"_initialize", signature{}, phase(1)},
		functionEntry{"flowhost_warmup", taskFunction, concat(phase(2), number(0))},
		functionEntry{"run", taskFunction, concat(says, put(60000, "7"), ask(60016, spyOutput, 60000, 1), number(0))})
	return p.bytes()
}

// spyCall has the mark in all its parts.
func spyCall(t *testing.T, digest, mark string) run.Call {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(mark+" file"), 0o600); err != nil {
		t.Fatal(err)
	}
	return run.Call{
		Run: run.ID(mark + " run"), Flow: mark + " flow", Task: mark + " task", Key: mark + " key", Attempt: 3,
		Scheduled: time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC), Module: digest,
		Input: json.RawMessage(`"` + mark + ` input"`), Config: json.RawMessage(`"` + mark + ` config"`),
		Timeout: time.Minute, Limits: run.Limits{Log: 1 << 20, Output: 12345, Memory: 1 << 16, Fuel: 1 << 40},
		Grants: run.Grants{Files: []run.FileGrant{{Folder: dir, Path: ".", Guest: "/in"}}},
	}
}

// TestInitializationKnowsNothingOfTheFirstCall: what is initialized once is
// shared by all calls, so nothing of the first one may be in it; and what each
// call initializes for itself is the same everywhere.
func TestInitializationKnowsNothingOfTheFirstCall(t *testing.T) {
	t.Parallel()
	ways := map[string]memory.Way{"copy": memory.WayCopy}
	if runtime.GOOS == "linux" {
		ways["drop"], ways["scan"], ways["watch"] = memory.WayDrop, memory.WayScan, memory.WayWatch
	}
	for engineName, engine := range map[string]host.Engine{"compiler": host.Compiler, "interpreter": host.Interpreter} {
		for kind, command := range map[string]bool{"reactor": false, "command": true} {
			for way, chosen := range ways {
				t.Run(engineName+"/"+kind+"/"+way, func(t *testing.T) {
					t.Parallel()
					spyOn(t, engine, spyOf(command, false), func(h *host.Host, digest string) { host.ChooseWay(h, digest, chosen) })
				})
			}
			t.Run(engineName+"/"+kind+"/fresh", func(t *testing.T) {
				t.Parallel()
				spyOn(t, engine, spyOf(command, true), nil)
			})
		}
	}
}

// spyOn makes calls with other data each, beginning with the canary's.
func spyOn(t *testing.T, engine host.Engine, module []byte, choose func(*host.Host, string)) {
	h := newHost(t, host.Config{Engine: engine, Instances: 1})
	digest := loadBytes(t, h, module)
	first := ""
	for _, mark := range []string{canary, "SECOND", "THIRD"} {
		result := invoke(t, h, spyCall(t, digest, mark))
		if out := string(result.Output); result.Outcome != run.OutcomeSucceeded || out != "7" && out != "null" {
			t.Fatalf("%s: %s %s %v", mark, result.Outcome, out, result.Failure)
		}
		var said strings.Builder
		for _, line := range result.Log.Lines {
			if line.Message == "said early" {
				t.Errorf("%s: the log has a line of the initialization", mark)
			}
			said.WriteString(line.Message)
		}

		text := said.String()
		own := strings.Index(text, mark)
		if own < spyCalled*spyArea/2 {
			t.Fatalf("%s: at %d the initialization has seen %q", mark, own, text[max(own, 0):][:40])
		}
		for _, part := range []string{" input", " file"} {
			if !strings.Contains(text, mark+part) {
				t.Errorf("%s: the call itself has not seen its%s", mark, part)
			}
		}
		before := text[:own]
		if strings.Contains(text, canary) && mark != canary {
			t.Errorf("%s has seen the first call's data", mark)
		}
		if first == "" {
			first = before
		} else if before != first {
			t.Errorf("%s: the initialization has seen something else than in the first call", mark)
		}
		if choose != nil {
			choose(h, digest)
		}
	}
}
