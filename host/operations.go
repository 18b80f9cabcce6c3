package host

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/host/internal/doorfile"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// outside is the way of a call to the world. Calls that start no operation have nothing of
// it but the pointer to the host.
type outside struct {
	host  *Host // nil while an instance is initialized
	door  *door.Door
	files doorfile.FS
	held  *atomic.Int64 // bytes of the pool that are reserved for the door
}

// errCallEnded is why operations of a call that has ended are canceled.
var errCallEnded = errors.New("the call has ended")

// entrance is the call's door, made when the guest first asks for it; nil while an instance
// is initialized.
func (inv *invocation) entrance() *door.Door {
	o := &inv.outside
	if o.door != nil || o.host == nil {
		return o.door
	}
	h, call, pool, held := o.host, inv.call, inv.lease.pool, new(atomic.Int64)
	config := door.Config{Limits: h.config.Doors, Room: func(n int64) bool { return pool.reserve(held, n) }}
	if h.config.Reach != nil {
		config.Open = func() door.Session { return h.config.Reach(call) }
	}
	config.Panicked = func(what string, p door.Panic) {
		h.config.Log.Error("an operation panicked: the host has a defect", "run", call.Run, "flow", call.Flow, "task", call.Task,
			"attempt", call.Attempt, "operation", what, "reason", p.Reason, "trace", p.Stack)
	}
	config.Report = func(r door.Report) {
		inv.noteOperation(r)
		if h.config.Operations != nil {
			h.config.Operations(call, r)
		}
	}
	o.held = held
	o.door = door.New(operationTime{h.life, timeOf(inv.context)}, config)
	return o.door
}

// noteOperation writes what people want to know of an operation to the attempt's log: that
// it was denied, and how the denial is lifted; or the progress of the attempt. Guests do not
// read it. What says that the guest is alive lets it be silent for another while.
func (inv *invocation) noteOperation(r door.Report) {
	fault := r.Answer.Fault.Full()
	if fault == nil && (r.Operation.Kind == access.KindProgress || r.Operation.Kind == access.KindHeartbeat) {
		timeOf(inv.context).heard()
	}
	switch {
	case fault != nil && fault.Code == access.CodeDenied:
		fields, err := json.Marshal(struct {
			Add    string `json:"add,omitempty"`
			Rule   string `json:"rule,omitempty"`
			Target string `json:"target,omitempty"`
		}{fault.Add, fault.Rule, fault.Target})
		if err != nil { // strings
			return
		}
		inv.log.add(abi.LevelWarn, "denied: "+fault.Message, fields)
	case fault == nil && r.Operation.Kind == access.KindProgress:
		var head struct {
			Fraction float64
			Message  string
		}
		if err := json.Unmarshal(r.Operation.Head, &head); err == nil {
			inv.log.add(abi.LevelInfo, "progress: "+head.Message, fmt.Appendf(nil, `{"fraction":%g}`, head.Fraction))
		}
	}
}

// operationTime is the context of a call's operations: the call's end cancels them by
// closing the door, so nothing watches for it.
type operationTime struct {
	context.Context // of the host
	call            *callTime
}

// Deadline is the call's present one.
func (t operationTime) Deadline() (time.Time, bool) {
	if t.call == nil {
		return t.Context.Deadline()
	}
	return t.call.Deadline()
}

// leaveDoor ends the call's operations.
func (inv *invocation) leaveDoor() {
	o := &inv.outside
	if o.door == nil {
		return
	}
	pool, held := inv.lease.pool, o.held
	late := o.door.End(errCallEnded)
	if late == nil {
		pool.unreserve(held)
		return
	}
	o.host.busy.Go(func() { // it is not zero: the call is among them
		<-late
		pool.unreserve(held)
	})
}

// openDoorFile is what opening [abi.DoorFile] gives.
func (inv *invocation) openDoorFile() *doorfile.File {
	return &doorfile.File{Door: inv.entrance(), Await: func() { inv.await(inv.context, -1) }}
}

// await waits until an operation may have ended, or for so long; negative: without a bound.
// It moves the guest's clock by what it returns, the time that has passed. When the call is
// canceled it comes back early, and when the call is over it unwinds the guest.
func (inv *invocation) await(ctx context.Context, bound time.Duration) time.Duration {
	var expired <-chan time.Time
	if bound >= 0 {
		timer := time.NewTimer(bound)
		defer timer.Stop()
		expired = timer.C
	}
	if inv.outside.door.Look() {
		return 0
	}
	inv.leaveThread()
	began := time.Now()
	own := timeOf(ctx)
	own.leave(run.WaitOperation)
	passed := time.Duration(-1)
	ended := ctx.Done()
	if inv.grace.begun() {
		ended = nil // the guest winds down
		nap := time.NewTimer(maxNap)
		defer nap.Stop()
		expired = nap.C
	}
	select {
	case <-inv.outside.door.Ready():
	case <-expired:
		passed = max(bound, 0)
	case <-ended:
	}
	if own.back() != nil && inv.over(ctx) || inv.over(ctx) {
		panic(errInterrupted) // the instance recovers it
	}
	inv.keepThread()
	inv.outside.door.Look()
	if passed < 0 {
		passed = time.Since(began)
	}
	inv.clock.elapsed += passed
	return passed
}

// operationImports are the imports of [abi.Module] that lead outside.
func operationImports() []taskImport {
	return []taskImport{
		{abi.ImportOpStart, 6, api.ValueTypeI32, answerOpStart},
		{abi.ImportOpWait, 3, api.ValueTypeI32, answerOpWait},
		{abi.ImportOpRead, 5, api.ValueTypeI32, answerOpRead},
		{abi.ImportOpClose, 1, api.ValueTypeI32, answerOpClose},
	}
}

func answerOpStart(_ context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	d := inv.entrance()
	if d == nil {
		return refused(abi.EINVAL)
	}
	if errno := d.CheckSizes(args.u32(1), args.u32(3), args.u32(5)); errno != 0 {
		return refused(errno)
	}
	var parts [3][]byte
	for i := range parts {
		part, errno := take(mem, args.u32(2*i), args.u32(2*i+1), math.MaxInt32)
		if errno != 0 {
			return refused(errno)
		}
		parts[i] = part
	}
	ticket, errno := d.Start(string(parts[0]), parts[1], parts[2])
	if errno != 0 {
		return refused(errno)
	}
	return int64(ticket)
}

func answerOpWait(ctx context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	d, count := inv.entrance(), args.u32(1)
	if d == nil || count == 0 || count > abi.MaxTickets {
		return refused(abi.EINVAL)
	}
	list, ok := mem.Read(args.u32(0), count*4)
	if !ok {
		return refused(abi.EINVAL)
	}
	var memory [abi.MaxTickets]int32
	tickets := memory[:count]
	for i := range tickets {
		tickets[i] = int32(binary.LittleEndian.Uint32(list[4*i:]))
	}
	left := time.Duration(args.i32(2)) * time.Millisecond
	bounded := left >= 0
	for {
		d.Look()
		index, errno := d.Poll(tickets)
		switch {
		case errno == 0:
			return int64(index)
		case errno != abi.EAGAIN, bounded && left <= 0, inv.grace.begun() && ended(ctx):
			return refused(errno)
		}
		passed := inv.await(ctx, left)
		if bounded {
			left -= passed
		}
	}
}

func answerOpRead(_ context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	d := inv.entrance()
	if d == nil {
		return refused(abi.EINVAL)
	}
	part, errno := d.Part(args.i32(0), args.i32(1))
	if errno != 0 {
		return refused(errno)
	}
	offset, size := args.u32(2), args.u32(4)
	if uint64(offset) > uint64(len(part)) {
		return refused(abi.EINVAL)
	}
	part = part[offset:]
	if size == 0 {
		return int64(len(part))
	}
	part = part[:min(uint64(len(part)), uint64(size))]
	if !mem.Write(args.u32(3), part) {
		return refused(abi.EINVAL)
	}
	return int64(len(part))
}

func answerOpClose(_ context.Context, inv *invocation, _ api.Memory, args arguments) int64 {
	d := inv.entrance()
	if d == nil {
		return refused(abi.EINVAL)
	}
	return refused(d.Close(args.i32(0)))
}
