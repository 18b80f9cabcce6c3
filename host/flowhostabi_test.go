package host

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// onePage is the memory of a module that has nothing else.
func onePage(t testing.TB) api.Memory {
	t.Helper()
	runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { runtime.Close(context.Background()) })
	module, err := runtime.Instantiate(t.Context(), []byte("\x00asm\x01\x00\x00\x00"+"\x05\x03\x01\x00\x01"+"\x07\x0a\x01\x06memory\x02\x00"))
	if err != nil {
		t.Fatal(err)
	}
	return module.Memory()
}

// FuzzTaskImports asks for anything: no request may break the host, and nothing
// is taken that is over its limit.
func FuzzTaskImports(f *testing.F) {
	mem := onePage(f)
	f.Add(uint8(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), []byte(`{"code":"x"}`))
	f.Add(uint8(1), uint64(3), uint64(65535), uint64(1<<31), uint64(0), uint64(0), []byte(nil))
	f.Add(uint8(2), uint64(0), uint64(12), uint64(0), uint64(0), uint64(0), []byte(`{"message":1}`))
	f.Add(uint8(3), uint64(0), uint64(12), uint64(0), uint64(0), uint64(0), []byte(`{"code":"x"}`))
	f.Add(uint8(4), uint64(1), uint64(0), uint64(1<<32-1), uint64(1<<32-1), uint64(1<<32-1), []byte(`{}`))
	limits := run.Limits{Memory: 1 << 16, Output: 100, Log: 1000}
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d, e uint64, content []byte) {
		mem.Write(0, content[:min(len(content), 1<<16)])
		inv := newInvocation(&run.Call{}, ABIFlowhost, "f", limits)
		imports := taskImports()
		called := imports[int(which)%len(imports)]
		answer := called.answer(t.Context(), inv, mem, arguments{a, b, c, d, e})
		if answer < -int64(abi.ENOSPC) || answer > 1<<16 {
			t.Errorf("%s answers %d", called.name, answer)
		}
		if int64(len(inv.output)) > limits.Output || inv.log.head.bytes+inv.log.tail.bytes > limits.Log {
			t.Errorf("%s took %d bytes of output, %d of log", called.name, len(inv.output), inv.log.head.bytes+inv.log.tail.bytes)
		}
		if _, err := inv.conclude(t.Context(), int32(answer), nil); err != nil {
			t.Errorf("%s: %v", called.name, err)
		}
	})
}

func TestWhatIsTakenFromAGuestIsACopy(t *testing.T) {
	t.Parallel()
	mem := onePage(t)
	inv := newInvocation(&run.Call{}, ABIFlowhost, "f", run.Limits{Output: 100, Log: 1000})
	mem.WriteString(0, `"before"`)
	if answer := answerOutput(t.Context(), inv, mem, arguments{0, 8}); answer != 0 {
		t.Fatalf("output answers %d", answer)
	}
	mem.WriteString(0, `"after!"`)
	if got := string(inv.output); got != `"before"` {
		t.Errorf("the output became %s", got)
	}
}

func TestUpperHalvesOfArgumentsDoNotMatter(t *testing.T) {
	t.Parallel()
	mem := onePage(t)
	inv := newInvocation(&run.Call{Input: []byte("12345")}, ABIFlowhost, "f", run.Limits{Output: 100, Log: 1000})
	const junk = 0xfff80000 << 32
	if answer := answerRead(t.Context(), inv, mem, arguments{junk, junk | 8, junk | 5}); answer != 5 {
		t.Errorf("read answers %d", answer)
	}
	if got, _ := mem.Read(8, 5); string(got) != "12345" {
		t.Errorf("the guest got %q", got)
	}
}

func TestGuestIsToldOfTheEndOfItsTime(t *testing.T) {
	t.Parallel()
	inv := newInvocation(&run.Call{}, ABIFlowhost, "f", run.Limits{})
	if got := answerTimeLeft(t.Context(), inv, nil, nil); got != -1 {
		t.Errorf("time_left without a deadline answers %d", got)
	}
	past, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if got := answerTimeLeft(past, inv, nil, nil); got != 0 {
		t.Errorf("time_left after the deadline answers %d", got)
	}
}
