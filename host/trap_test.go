package host

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

func TestTraceHasTheAuthorsNumbers(t *testing.T) {
	t.Parallel()
	i := image{form: shape{imports: []Extern{{Kind: KindFunction}, {Kind: KindGlobal}, {Kind: KindFunction}}}}
	got := i.unshift(".$1(i32)\n.$2(i32)\n.$3() i32\n.$99999999999999999999()\nmain.$7(i32)")
	want := ".$1(i32)\n.interrupt(i32)\n.$2() i32\n.$99999999999999999999()\nmain.$7(i32)"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// When something on the host's side breaks under a guest, its operator learns
// where, and the guest's author does not.
func TestFaultOfTheHostIsToldToItsOperator(t *testing.T) {
	t.Parallel()
	var operator bytes.Buffer
	h := &Host{config: Config{Log: slog.New(slog.NewTextHandler(&operator, nil))}}
	call := &run.Call{Run: "r", Task: "t"}
	inv := newInvocation(call, ABIFlowhost, "f", run.Limits{Log: 10_000})
	trap := (&image{}).guestError(errors.New("index out of range [0] (recovered by wazero)\nwasm stack trace:\n\t.$5(i32)\n\nGo runtime stack trace:\ngoroutine 1\nhost.go:12"))
	h.report(call, trap)
	result, lost := inv.conclude(t.Context(), 0, trap)
	failure := result.Failure
	if lost != nil || failure == nil || failure.Code != run.CodeTrap || !strings.HasPrefix(failure.Message, "index out of range") {
		t.Fatalf("%+v, %v", failure, lost)
	}
	lines := result.Log.Lines
	if len(lines) != 1 || !strings.Contains(lines[0].Message, ".$4(i32)") || strings.Contains(lines[0].Message, "host.go") {
		t.Errorf("the guest's log: %+v", lines)
	}
	if !strings.Contains(operator.String(), "host.go:12") {
		t.Errorf("the operator's log: %s", operator.String())
	}
}
