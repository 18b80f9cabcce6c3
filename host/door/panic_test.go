package door_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// faulty is a driver with defects, one for each kind.
type faulty struct{}

func (faulty) Do(_ context.Context, op *access.Operation) access.Answer {
	switch op.Kind {
	case "secret":
		panic("the password is hunter2")
	case "error":
		panic(errors.New("the password is hunter2"))
	case "index":
		_ = op.Body[len(op.Body)]
	}
	return access.Answer{Head: []byte("{}")}
}

func (faulty) Close() { panic("again") }

// A driver that panics fails its operation and no other one; the panic is reported without
// what it was about.
func TestDriverPanics(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	panics := map[string]door.Panic{}
	d := door.New(t.Context(), door.Config{Open: func() door.Session { return faulty{} }, Panicked: func(what string, p door.Panic) {
		mu.Lock()
		defer mu.Unlock()
		panics[what] = p
	}})
	for kind, code := range map[string]string{"secret": access.CodeInternal, "error": access.CodeInternal, "index": access.CodeInternal, "fine": ""} {
		number, errno := d.Start(kind, []byte("{}"), nil)
		if errno != 0 {
			t.Fatal(errno)
		}
		for !d.Look() {
			<-d.Ready()
		}
		got := ""
		if f := d.Fault(number); f != nil {
			got = f.Code
		}
		if got != code {
			t.Errorf("%s: %q, want %q", kind, got, code)
		}
		if _, errno := d.Part(number, abi.PartBody); code != "" && errno != abi.EIO {
			t.Errorf("%s: errno %d", kind, errno)
		}
	}
	if late := d.End(errors.New("over")); late != nil {
		t.Error("an operation has not ended")
	}
	reasons := map[string]string{"secret": "string", "error": "*errors.errorString", "index": "index out of range [0] with length 0", "close": "string"}
	mu.Lock()
	defer mu.Unlock()
	for kind, reason := range reasons {
		p := panics[kind]
		if !strings.HasSuffix(p.Reason, reason) || !strings.Contains(p.Stack, "door_test.faulty.") {
			t.Errorf("%s: %q\n%s", kind, p.Reason, p.Stack)
		}
		if strings.Contains(p.Reason+p.Stack, "hunter2") {
			t.Errorf("%s: the value is in %q\n%s", kind, p.Reason, p.Stack)
		}
	}
	if len(panics) != len(reasons) {
		t.Errorf("%d panics", len(panics))
	}
}
