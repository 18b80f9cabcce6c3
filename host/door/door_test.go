package door_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// controlled performs an operation when the test lets it end.
type controlled struct {
	mu     sync.Mutex
	ends   map[int]chan access.Answer // by number
	closed int
}

func (c *controlled) end(n int) chan access.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends[n] == nil {
		c.ends[n] = make(chan access.Answer, 1)
	}
	return c.ends[n]
}

func (c *controlled) Do(ctx context.Context, op *access.Operation) access.Answer {
	select {
	case a := <-c.end(op.Number):
		return a
	case <-ctx.Done():
		return access.Answer{Fault: &access.Fault{Code: access.CodeCanceled, Message: "canceled"}}
	}
}

func (c *controlled) Close() { c.closed++ }

// state of an operation in the model.
type modeled struct {
	ended, visible, reported bool
	body                     int // bytes of the answer; -1: it failed
	size                     int // bytes that are held for it
}

// Random guests against a model: what each call returns, what is held, and that each
// operation is reported once and in the order in which the guest saw the ends.
func TestDoorAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { playGuest(t, seed) })
	}
}

func playGuest(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	limits := door.Limits{Operations: 1 + random.IntN(40), InFlight: 1 + random.IntN(6), Held: int64(20 + random.IntN(400)), Total: 1 << 30}
	session := &controlled{ends: map[int]chan access.Answer{}}
	var reports, expected []int
	room := int64(0)
	d := door.New(t.Context(), door.Config{
		Open: func() door.Session { return session }, Limits: limits,
		Report: func(r door.Report) { reports = append(reports, r.Operation.Number) },
		Room:   func(held int64) bool { room = max(room, held); return true },
	})
	model := map[int]*modeled{}
	started, held := 0, 0
	see := func(n int) {
		if m := model[n]; !m.reported {
			m.reported = true
			expected = append(expected, n)
		}
	}
	open := func() []int32 {
		var all []int32
		for n := range started {
			if model[n+1] != nil {
				all = append(all, int32(n+1))
			}
		}
		return all
	}
	check := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %s: %v, want %v", seed, what, got, want)
		}
	}
	for range 200 {
		ticket := int32(1 + random.IntN(started+2))
		m := model[int(ticket)]
		switch random.IntN(6) {
		case 0, 1:
			body := make([]byte, random.IntN(60))
			n, errno := d.Start("http", []byte("{}"), body)
			want := abi.Errno(0)
			switch {
			case len(model) >= limits.InFlight:
				want = abi.EMFILE
			case started >= limits.Operations || int64(held+2+len(body)) > limits.Held:
				want = abi.ENOSPC
			}
			check("start", errno, want)
			if errno == 0 {
				started++
				check("ticket", n, started)
				model[started] = &modeled{size: 2 + len(body)}
				held += 2 + len(body)
			}
		case 2:
			if m == nil || m.ended {
				continue
			}
			answer, size := access.Answer{Head: []byte("{}"), Body: make([]byte, random.IntN(60))}, 0
			size = len(answer.Body) + 2
			m.ended, m.body = true, len(answer.Body)
			if random.IntN(3) == 0 {
				answer, size, m.body = access.Answer{Fault: &access.Fault{Code: access.CodeDenied, Message: "m"}}, 0, -1
			}
			if int64(held+size) > limits.Held {
				size, m.body = 0, -1
			}
			held += size
			m.size += size
			session.end(int(ticket)) <- answer
			synctest.Wait()
		case 3:
			all, found := open(), false
			for _, n := range all {
				if m := model[int(n)]; m.ended && !m.visible {
					m.visible, found = true, true
				}
			}
			check("look", d.Look(), found)
			index, errno := d.Poll(all)
			first := slices.IndexFunc(all, func(n int32) bool { return model[int(n)].visible })
			if first < 0 {
				check("poll", errno, abi.EAGAIN)
			} else {
				check("poll", fmt.Sprint(index, errno), fmt.Sprint(first, abi.Errno(0)))
				see(int(all[first]))
			}
		case 4:
			part, errno := d.Part(ticket, abi.PartBody)
			switch {
			case m == nil:
				check("part", errno, abi.EBADF)
			case !m.visible:
				check("part", errno, abi.EAGAIN)
			case m.body < 0:
				check("part of a fault", errno == 0, false)
				see(int(ticket))
			default:
				check("part", fmt.Sprint(len(part), errno), fmt.Sprint(m.body, abi.Errno(0)))
				see(int(ticket))
			}
		case 5:
			errno := d.Close(ticket)
			if m == nil {
				check("close", errno, abi.EBADF)
				continue
			}
			check("close", errno, abi.Errno(0))
			see(int(ticket))
			held -= m.size
			delete(model, int(ticket))
		}
		if int64(held) > limits.Held || room > limits.Held {
			t.Fatalf("seed %d: %d bytes are held, room for %d was asked for", seed, held, room)
		}
	}
	for _, n := range open() {
		see(int(n))
	}
	d.End(errors.New("over"))
	d.End(errors.New("over"))
	check("reports", reports, expected)
	check("closed sessions", session.closed, min(started, 1))
	if _, errno := d.Start("http", []byte("{}"), nil); errno != abi.EINVAL {
		t.Errorf("seed %d: start after the end: %d", seed, errno)
	}
}

// A fault reaches guests in the form that the ABI documents, without what is for the operator.
func TestFaultOfTheABI(t *testing.T) {
	t.Parallel()
	want := abi.Fault{Code: "denied", Message: "m", Target: "t", Rule: "r", Add: "a", Detail: "d", Retryable: true, RetryAfterMS: 7}
	session := &controlled{ends: map[int]chan access.Answer{}}
	d := door.New(t.Context(), door.Config{Open: func() door.Session { return session }})
	defer d.End(nil)
	ticket, errno := d.Start("http", []byte("{}"), nil)
	if errno != 0 {
		t.Fatal(errno)
	}
	session.end(1) <- access.Answer{Fault: &access.Fault{
		Code: "denied", Message: "m", Target: "t", Rule: "r", Add: "a", Detail: "d", Retryable: true, RetryAfterMS: 7,
		Inside: &access.Fault{Message: "10.0.0.5", Target: "10.0.0.5"},
	}}
	<-d.Ready()
	d.Look()
	head, errno := d.Part(ticket, abi.PartHead)
	var got abi.Fault
	if err := json.Unmarshal(head, &got); err != nil || errno != 0 || got != want || strings.Contains(string(head), "10.0.0.5") {
		t.Errorf("%s %d %v", head, errno, err)
	}
}

// The guest waits no longer than the session's Do does after its context has ended.
func TestEndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		session := &controlled{ends: map[int]chan access.Answer{}}
		ctx, cancel := context.WithCancel(t.Context())
		d := door.New(ctx, door.Config{Open: func() door.Session { return session }})
		for range 5 {
			if _, errno := d.Start("http", []byte("{}"), nil); errno != 0 {
				t.Fatal(errno)
			}
		}
		time.AfterFunc(time.Second, cancel)
		<-d.Ready()
		d.End(nil)
		if session.closed != 1 {
			t.Error("the session is open")
		}
	})
}

func BenchmarkDoor(b *testing.B) {
	d := door.New(b.Context(), door.Config{Open: func() door.Session { return at(func() access.Answer { return access.Answer{Head: []byte("{}")} }) }, Limits: door.Limits{Operations: 1 << 30, Total: 1 << 60}})
	defer d.End(nil)
	for b.Loop() {
		ticket, errno := d.Start("http", []byte("{}"), nil)
		if errno != 0 {
			b.Fatal(errno)
		}
		for {
			if d.Look() {
				break
			}
			<-d.Ready()
		}
		d.Close(ticket)
	}
}

type at func() access.Answer

func (f at) Do(context.Context, *access.Operation) access.Answer { return f() }
func (f at) Close()                                              {}
