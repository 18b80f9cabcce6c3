package door

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// Session performs the operations of one attempt. Do is called by several goroutines; it
// ends soon after ctx has ended. Close is called once, after all of them: it ends what the
// attempt has left open.
type Session interface {
	Do(ctx context.Context, op *access.Operation) access.Answer
	Close()
}

// Limits bound one attempt. A zero field is the default.
type Limits struct {
	Operations int   // in all; default 100 000
	InFlight   int   // started and not closed; default 64
	Held       int64 // bytes of heads and bodies of those; default 64 MiB
	Total      int64 // bytes of heads and bodies of all; default 16 GiB

	Patience time.Duration // for operations that were canceled to end; default 5s
}

// Defaults of Limits, and bounds of one operation.
const (
	defaultOperations = 100_000
	defaultInFlight   = 64
	defaultHeld       = 64 << 20
	defaultTotal      = 16 << 30
	defaultPatience   = 5 * time.Second

	maxKind = 32
	maxHead = 256 << 10
	maxBody = 16 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Operations <= 0 {
		l.Operations = defaultOperations
	}
	if l.InFlight <= 0 {
		l.InFlight = defaultInFlight
	}
	if l.Held <= 0 {
		l.Held = defaultHeld
	}
	if l.Total <= 0 {
		l.Total = defaultTotal
	}
	if l.Patience <= 0 {
		l.Patience = defaultPatience
	}
	return l
}

// Config is what a door needs.
type Config struct {
	Open   func() Session // called with the first operation; nil: every operation is denied
	Limits Limits
	// Panicked is called when the session panics, with what it was doing, the kind of an
	// operation or "close", and with the panic. It is called by several goroutines. Default:
	// nobody is interested.
	Panicked func(what string, p Panic)

	Report func(Report) // called on the call's goroutine for each operation, when the guest sees its end or the door ends; default: nobody is interested

	// Room reserves memory of the host for so many more bytes that the door is about to
	// hold, or reports that there is none. Nothing is taken back before the call ends.
	// Default: there is always room. It is called by several goroutines.
	Room func(held int64) bool
}

// Report is one operation and its end.
type Report struct {
	Operation *access.Operation
	Answer    *access.Answer
	Started   time.Time
	Took      time.Duration
	Late      bool // it was canceled and did not end: its driver is at fault
	Denied    int  // how many operations of the attempt were denied, this one included if it was
}

// Door is the operations of one attempt. Its methods are called on one goroutine.
type Door struct {
	config  Config
	ctx     context.Context
	cancel  context.CancelCauseFunc
	session Session
	running sync.WaitGroup
	ready   chan struct{} // one place: an operation has ended
	open    []*ticket     // in the order of their numbers
	late    []*ticket     // that were closed, canceled, and did not end within the patience
	waits   time.Duration // patience that is left for operations that the guest closes
	last    int           // number of the operation that was started last
	denied  int           // reported operations that were denied
	ended   bool

	mu    sync.Mutex
	held  int64 // guarded by mu, as is what follows
	total int64
	peak  int64 // of held, for which there is room
}

// ticket is an operation that the guest has not closed.
type ticket struct {
	number    int
	operation access.Operation
	started   time.Time
	done      chan struct{} // closed when the following are set
	answer    access.Answer
	took      time.Duration
	size      int64 // held for it; guarded by the door's mu, as is what follows
	collected int64 // part of it that the driver has reserved for the answer
	late      bool  // its end gives back what is held

	visible  bool // the guest may see that it has ended
	reported bool
	cancel   context.CancelFunc
}

// New makes a door whose operations end with ctx.
func New(ctx context.Context, config Config) *Door {
	config.Limits = config.Limits.withDefaults()
	d := &Door{config: config, ready: make(chan struct{}, 1), waits: config.Limits.Patience}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	return d
}

// Start starts an operation and returns its ticket. kind, head and body are copies that the
// door keeps. It fails with EINVAL for a kind or head that is none, with E2BIG for one or
// for a body that is too large, with EMFILE while too many operations are open, and with
// ENOSPC when the attempt has used up what it may.
func (d *Door) Start(kind string, head, body []byte) (int32, abi.Errno) {
	size := int64(len(head) + len(body))
	switch {
	case d.ended || kind == "" || len(kind) > maxKind || !isObject(head):
		return 0, abi.EINVAL
	case len(head) > maxHead || len(body) > maxBody:
		return 0, abi.E2BIG
	case d.crowded():
		return 0, abi.EMFILE
	case d.last >= d.config.Limits.Operations || !d.take(size):
		return 0, abi.ENOSPC
	}
	if d.session == nil && d.config.Open != nil {
		d.session = d.config.Open()
	}
	d.last++
	ctx, cancel := context.WithCancel(d.ctx)
	t := &ticket{
		number: d.last, operation: access.Operation{Number: d.last, Kind: kind, Head: head, Body: body},
		started: time.Now(), done: make(chan struct{}), size: size, cancel: cancel,
	}
	d.open = append(d.open, t)
	d.running.Go(func() {
		growStack()
		d.perform(ctx, t)
	})
	return int32(t.number), 0
}

// crowded reports whether as many operations are open or under way as may be.
func (d *Door) crowded() bool {
	d.late = slices.DeleteFunc(d.late, (*ticket).ended)
	return len(d.open)+len(d.late) >= d.config.Limits.InFlight
}

// CheckSizes reports whether an operation of these sizes could be started, before anything
// is copied for it.
func (d *Door) CheckSizes(kind, head, body uint32) abi.Errno {
	switch {
	case kind > maxKind:
		return abi.EINVAL
	case head > maxHead || body > maxBody:
		return abi.E2BIG
	case d.crowded():
		return abi.EMFILE
	case d.last >= d.config.Limits.Operations:
		return abi.ENOSPC
	}
	return 0
}

// growStack makes the stack of a new goroutine as large as drivers need it, while there are no
// frames on it: to grow it step by step takes a sixth of an operation.
//
//go:noinline
func growStack() {
	var room [10 << 10]byte
	keep(&room)
}

//go:noinline
func keep(*[10 << 10]byte) {}

func (d *Door) perform(ctx context.Context, t *ticket) {
	defer t.cancel()
	answer := access.Answer{Fault: &access.Fault{Code: access.CodeDenied, Message: "nothing can be reached here"}}
	if d.session != nil {
		answer = d.do(access.WithRoom(ctx, func(n int) bool { return d.collect(t, int64(n)) }), &t.operation)
	}
	if answer.Fault == nil && ctx.Err() != nil && answer.Head == nil {
		answer.Fault = &access.Fault{Code: access.CodeCanceled, Message: "the operation was canceled"}
	}
	if answer.Fault != nil {
		answer.Head, answer.Body = nil, nil
	}
	if !d.settle(t, int64(len(answer.Head)+len(answer.Body))) {
		answer = access.Answer{Fault: access.NoRoom()}
	}
	if answer.Fault != nil {
		answer.Fault = bounded(answer.Fault)
		answer.Head = faultHead(answer.Fault)
	}
	t.answer, t.took = answer, time.Since(t.started)
	d.mu.Lock()
	close(t.done)
	if t.late {
		d.held -= t.size
	}
	d.mu.Unlock()
	select {
	case d.ready <- struct{}{}:
	default:
	}
}

// collect reserves, or gives back, bytes of an answer that its driver does not have as a
// whole.
func (d *Door) collect(t *ticket, n int64) bool {
	if n > 0 && !d.take(n) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n < 0 {
		n = max(n, -t.collected)
		d.held, d.total = d.held+n, d.total+n
	}
	t.collected += n
	t.size += n
	return true
}

// settle accounts for the answer instead of what was reserved for it.
func (d *Door) settle(t *ticket, size int64) bool {
	d.mu.Lock()
	missing := size - t.collected
	d.mu.Unlock()
	fits := d.collect(t, missing)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !fits {
		d.held, d.total, t.size = d.held-t.collected, d.total-t.collected, t.size-t.collected
	}
	t.collected = 0
	return fits
}

// take accounts for bytes that are held from now on.
func (d *Door) take(size int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held + size
	if held > d.config.Limits.Held || d.total+size > d.config.Limits.Total {
		return false
	}
	if held > d.peak {
		if d.config.Room != nil && !d.config.Room(held) {
			return false
		}
		d.peak = held
	}
	d.held = held
	d.total += size
	return true
}

// Hold accounts for bytes that a caller collects for an operation, and reports whether
// there is room for them.
func (d *Door) Hold(n int) bool { return !d.ended && d.take(int64(n)) }

// Free takes them back.
func (d *Door) Free(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held -= int64(n)
	d.total -= int64(n)
}

func (d *Door) find(number int32) *ticket {
	i, found := slices.BinarySearchFunc(d.open, int(number), func(t *ticket, n int) int { return t.number - n })
	if !found {
		return nil
	}
	return d.open[i]
}

// Look lets the guest see the ends of operations that have ended, and reports whether there
// are new ones. It is called where the guest waits: so what it sees elsewhere does not depend on
// how fast an answer came.
func (d *Door) Look() bool {
	found := false
	for _, t := range d.open {
		if !t.visible && t.ended() {
			t.visible, found = true, true
		}
	}
	return found
}

func (t *ticket) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Poll returns the index of the first of the tickets whose operation has ended, as far as
// [Door.Look] has seen. It fails
// with EBADF for a ticket that is not open, and with EAGAIN when none has ended.
func (d *Door) Poll(tickets []int32) (int, abi.Errno) {
	first := -1
	for i, number := range tickets {
		t := d.find(number)
		if t == nil {
			return 0, abi.EBADF
		}
		if first < 0 && t.visible {
			first = i
		}
	}
	if first < 0 {
		return 0, abi.EAGAIN
	}
	d.report(d.find(tickets[first]))
	return first, 0
}

// Ready has a value when an operation may have ended since it was read last.
func (d *Door) Ready() <-chan struct{} { return d.ready }

// Part returns a part of an answer: 0 its head, 1 its body. The caller must not change it.
// It fails with EBADF for a ticket that is not open, EAGAIN for an operation that has not
// ended, EINVAL for another part, and for the body of an operation that was not performed
// with the number that fits its fault.
func (d *Door) Part(number int32, part int32) ([]byte, abi.Errno) {
	t := d.find(number)
	switch {
	case t == nil:
		return nil, abi.EBADF
	case !t.visible:
		return nil, abi.EAGAIN
	}
	d.report(t)
	switch part {
	case abi.PartHead:
		return t.answer.Head, 0
	case abi.PartBody:
		if t.answer.Fault != nil {
			return nil, errnoOf(t.answer.Fault)
		}
		return t.answer.Body, 0
	}
	return nil, abi.EINVAL
}

// Fault is why the operation of a ticket was not performed, nil if it was or has not ended.
func (d *Door) Fault(number int32) *access.Fault {
	if t := d.find(number); t != nil && t.visible {
		return t.answer.Fault
	}
	return nil
}

func (d *Door) report(t *ticket) {
	if t.reported {
		return
	}
	t.reported = true
	if f := t.answer.Fault; f != nil && f.Code == access.CodeDenied {
		d.denied++
	}
	if d.config.Report != nil {
		d.config.Report(Report{Operation: &t.operation, Answer: &t.answer, Started: t.started, Took: t.took, Denied: d.denied})
	}
}

// Close gives a ticket back. An operation that has not ended is canceled. One whose driver
// does not end it in time is left behind: it counts as open until it ends.
// It fails with EBADF for a ticket that is not open.
func (d *Door) Close(number int32) abi.Errno {
	t := d.find(number)
	if t == nil {
		return abi.EBADF
	}
	t.cancel()
	d.open = slices.DeleteFunc(d.open, func(o *ticket) bool { return o == t })
	began := time.Now()
	if !t.endsWithin(d.waits) {
		d.waits -= time.Since(began)
		d.leave(t)
		return 0
	}
	d.report(t)
	d.mu.Lock()
	d.held -= t.size
	d.mu.Unlock()
	return 0
}

// endsWithin waits for the end of an operation that is canceled.
func (t *ticket) endsWithin(patience time.Duration) bool {
	if t.ended() || patience <= 0 {
		return t.ended()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-t.done:
		return true
	case <-timer.C:
		return false
	}
}

// leave reports an operation that does not end, although it is canceled. Its driver is at
// fault.
func (d *Door) leave(t *ticket) {
	d.mu.Lock()
	if t.late = !t.ended(); !t.late {
		d.held -= t.size
	}
	d.mu.Unlock()
	d.late = append(d.late, t)
	if t.reported || d.config.Report == nil {
		return
	}
	t.reported = true
	d.config.Report(Report{
		Operation: &access.Operation{Number: t.number, Kind: t.operation.Kind}, // the driver may change the rest
		Answer:    &access.Answer{Fault: &access.Fault{Code: access.CodeInternal, Message: "the operation was canceled and does not end: it is left behind"}},
		Started:   t.started, Took: time.Since(t.started), Late: true, Denied: d.denied,
	})
}

// Used is how many operations were started.
func (d *Door) Used() int { return d.last }

// End cancels what is under way, waits for it, and closes the session. A door that has
// ended starts nothing. Where a driver does not end its operations in time, End returns a
// channel that is closed when it has done so and the session is closed, otherwise nil.
func (d *Door) End(cause error) (late <-chan struct{}) {
	if d.ended {
		return nil
	}
	d.ended = true
	d.cancel(cause)
	until := time.Now().Add(d.config.Limits.Patience)
	for _, t := range d.open {
		if t.endsWithin(time.Until(until)) {
			d.report(t)
		} else {
			d.leave(t)
		}
	}
	d.open = nil
	if !slices.ContainsFunc(d.late, func(t *ticket) bool { return !t.ended() }) {
		d.close()
		return nil
	}
	ended := make(chan struct{})
	go func() { // the caller waits for it
		defer close(ended)
		d.close()
	}()
	return ended
}

func (d *Door) close() {
	d.running.Wait()
	if d.session != nil {
		defer d.recover("close")
		d.session.Close()
	}
}
