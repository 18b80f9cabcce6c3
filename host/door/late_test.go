package door_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// deaf does not end its operations when their context has ended.
type deaf struct {
	release chan struct{}
	closed  int
}

func (d *deaf) Do(context.Context, *access.Operation) access.Answer {
	<-d.release
	return access.Answer{Head: []byte("{}"), Body: make([]byte, 100)}
}

func (d *deaf) Close() { d.closed++ }

// A driver that ignores the end of its context holds up the guest and the end of the call
// for a bounded time, however many operations it keeps. They count as open until they end.
func TestDriverThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		session := &deaf{release: make(chan struct{})}
		var late []int
		d := door.New(t.Context(), door.Config{
			Open: func() door.Session { return session }, Limits: door.Limits{InFlight: 4, Held: 40},
			Report: func(r door.Report) {
				if r.Late && r.Answer.Fault.Code == access.CodeInternal {
					late = append(late, r.Operation.Number)
				}
			},
		})
		began := time.Now()
		for n := range int32(3) {
			if _, errno := d.Start("http", []byte("{}"), make([]byte, 8)); errno != 0 {
				t.Fatal(errno)
			}
			if errno := d.Close(n + 1); errno != 0 {
				t.Fatal(errno)
			}
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("closing took %v", took)
		}
		if _, errno := d.Start("http", []byte("{}"), make([]byte, 9)); errno != abi.ENOSPC {
			t.Errorf("bytes of operations that have not ended are free: %d", errno)
		}
		if _, errno := d.Start("http", []byte("{}"), nil); errno != 0 {
			t.Fatal(errno)
		}
		if _, errno := d.Start("http", []byte("{}"), nil); errno != abi.EMFILE {
			t.Errorf("a fifth operation: %d", errno)
		}
		began = time.Now()
		ended := d.End(errors.New("over"))
		if took := time.Since(began); took != 5*time.Second || ended == nil || session.closed != 0 {
			t.Errorf("the end took %v, closed sessions: %d", took, session.closed)
		}
		if len(late) != 4 {
			t.Errorf("reported as late: %v", late)
		}
		close(session.release)
		<-ended
		if session.closed != 1 {
			t.Error("the session is open")
		}
	})
}

// An operation that ends after the guest has closed it gives its place and bytes back.
func TestLateOperationGivesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		session := &deaf{release: make(chan struct{})}
		d := door.New(t.Context(), door.Config{
			Open: func() door.Session { return session }, Limits: door.Limits{InFlight: 1, Held: 200, Patience: time.Second},
		})
		for range 20 { // each would hold 102 bytes
			if _, errno := d.Start("http", []byte("{}"), nil); errno != 0 {
				t.Fatal(errno)
			}
			d.Close(int32(d.Used()))
			if _, errno := d.Start("http", []byte("{}"), nil); errno != abi.EMFILE {
				t.Fatal(errno)
			}
			session.release <- struct{}{}
			synctest.Wait()
		}
		if late := d.End(nil); late != nil || session.closed != 1 {
			t.Error("something is late")
		}
	})
}

// What drivers collect of their answers is bounded while they do.
func TestAnswersAreBoundedWhileTheyArrive(t *testing.T) {
	t.Parallel()
	refused := make(chan bool, 3)
	session := operations(func(ctx context.Context, op *access.Operation) access.Answer {
		switch op.Kind {
		case "too.much":
			refused <- !access.Reserve(ctx, 60) || !access.Reserve(ctx, 61)
			return access.Answer{Fault: access.NoRoom()}
		case "again": // what was dropped does not count, nor does more than was reserved
			refused <- !access.Reserve(ctx, 90) || !access.Reserve(ctx, -1000) || !access.Reserve(ctx, 50)
		}
		return access.Answer{Head: []byte("{}"), Body: make([]byte, 90)}
	})
	d := door.New(t.Context(), door.Config{Open: func() door.Session { return session }, Limits: door.Limits{Held: 100}})
	defer d.End(nil)
	for n, kind := range []string{"too.much", "again", "plain", "again"} {
		ticket, errno := d.Start(kind, []byte("{}"), nil)
		if errno != 0 {
			t.Fatal(errno)
		}
		for !d.Look() {
			<-d.Ready()
		}
		if kind != "plain" && <-refused != (kind == "too.much") {
			t.Errorf("%d: %s", n, kind)
		}
		if body, errno := d.Part(ticket, abi.PartBody); kind != "too.much" && (errno != 0 || len(body) != 90) {
			t.Errorf("%d: %s: %d bytes, %d", n, kind, len(body), errno)
		}
		d.Close(ticket)
	}
}

type operations func(context.Context, *access.Operation) access.Answer

func (f operations) Do(ctx context.Context, op *access.Operation) access.Answer { return f(ctx, op) }
func (f operations) Close()                                                     {}
