package door_test

import (
	"context"
	"testing"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// FuzzDoor plays a guest by bytes: whatever it does, what it holds stays within the limits,
// each operation is reported once, and everything has ended with the door.
func FuzzDoor(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3, 4, 5})
	f.Add([]byte{0, 8, 16, 24, 3, 11, 4, 12, 5, 13, 0, 8})
	f.Add([]byte("\x00\x01\x05\x05\x00\x09\x11\x19\x21\x29"))
	f.Fuzz(func(t *testing.T, script []byte) {
		const held, inFlight, most = 300, 5, 50
		under, closed := 0, 0
		session := fuzzed{
			do: func(ctx context.Context, op *access.Operation) access.Answer {
				switch len(op.Body) % 4 {
				case 0:
					<-ctx.Done()
				case 1:
					access.Reserve(ctx, 3*len(op.Body))
				case 2:
					access.Reserve(ctx, len(op.Body))
					access.Reserve(ctx, -2*len(op.Body))
					return access.Answer{Fault: &access.Fault{Code: access.CodeDenied}}
				}
				return access.Answer{Head: []byte("{}"), Body: op.Body}
			},
			close: func() { closed++ },
		}
		reports := map[int]int{}
		d := door.New(t.Context(), door.Config{
			Open: func() door.Session { under++; return session }, Limits: door.Limits{Operations: most, InFlight: inFlight, Held: held},
			Report: func(r door.Report) { reports[r.Operation.Number]++ },
			Room: func(n int64) bool {
				if n > held {
					t.Errorf("room for %d bytes was asked for", n)
				}
				return true
			},
		})
		open := 0
		for _, b := range script {
			ticket := int32(b >> 3)
			switch b & 7 {
			case 0, 1:
				if _, errno := d.Start([]string{"http", "", "x"}[b>>3%3], []byte([]string{"{}", "[]", `{"a":1}`}[b>>5%3]), make([]byte, b>>3)); errno == 0 {
					if open++; open > inFlight {
						t.Fatalf("%d operations are open", open)
					}
				}
			case 2:
				d.Poll([]int32{ticket, ticket + 1})
			case 3:
				if _, errno := d.Part(ticket, int32(b>>4%3)); errno < 0 {
					t.Error(errno)
				}
			case 4:
				d.Fault(ticket)
				d.Look()
			case 5:
				if d.Close(ticket) == 0 {
					open--
				}
			case 6:
				if d.Hold(int(b)) {
					d.Free(int(b))
				}
			case 7:
				d.CheckSizes(uint32(b), uint32(b), uint32(b))
			}
		}
		if late := d.End(nil); late != nil {
			t.Error("something is late")
		}
		if d.Used() > most || len(reports) != d.Used() || closed != under || under > 1 {
			t.Errorf("%d operations, %d reports, %d sessions, %d closed", d.Used(), len(reports), under, closed)
		}
		for n, times := range reports {
			if times != 1 {
				t.Errorf("operation %d was reported %d times", n, times)
			}
		}
		if _, errno := d.Part(1, abi.PartHead); errno != abi.EBADF {
			t.Errorf("a ticket of a door that has ended: %d", errno)
		}
	})
}

type fuzzed struct {
	do    func(context.Context, *access.Operation) access.Answer
	close func()
}

func (f fuzzed) Do(ctx context.Context, op *access.Operation) access.Answer { return f.do(ctx, op) }
func (f fuzzed) Close()                                                     { f.close() }
