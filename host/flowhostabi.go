package host

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// arguments are the parameters of an import as they lie on wazero's stack. The
// upper half of a 32 bit slot is not defined.
type arguments []uint64

func (a arguments) u32(i int) uint32 { return api.DecodeU32(a[i]) }
func (a arguments) i32(i int) int32  { return api.DecodeI32(a[i]) }

// taskImport is one function of flowhost:task/v1. Its answer is what the guest
// gets; i32 results are negative error numbers where the request is refused.
type taskImport struct {
	name   string
	params int            // all i32
	result api.ValueType  // one
	answer taskImportFunc // never panics, never keeps a view of mem
}

type taskImportFunc func(ctx context.Context, inv *invocation, mem api.Memory, args arguments) int64

func taskImports() []taskImport {
	return append([]taskImport{
		{abi.ImportSize, 1, api.ValueTypeI32, answerSize},
		{abi.ImportRead, 3, api.ValueTypeI32, answerRead},
		{abi.ImportOutput, 2, api.ValueTypeI32, answerOutput},
		{abi.ImportFail, 2, api.ValueTypeI32, answerFail},
		{abi.ImportLog, 5, api.ValueTypeI32, answerLog},
		{abi.ImportTimeLeft, 0, api.ValueTypeI64, answerTimeLeft},
		{abi.ImportShouldStop, 0, api.ValueTypeI32, answerShouldStop},
	}, operationImports()...)
}

// provideTaskModule makes flowhost:task/v1 importable.
func provideTaskModule(ctx context.Context, r wazero.Runtime) error {
	builder := r.NewHostModuleBuilder(abi.Module)
	for _, f := range taskImports() {
		params := make([]api.ValueType, f.params)
		for i := range params {
			params[i] = api.ValueTypeI32
		}
		call := func(ctx context.Context, mod api.Module, stack []uint64) {
			inv := invocationOf(ctx)
			answer := f.answer(ctx, inv, mod.Memory(), stack)
			if f.result == api.ValueTypeI32 {
				stack[0] = api.EncodeI32(int32(answer))
			} else {
				stack[0] = api.EncodeI64(answer)
			}
		}
		builder.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(call), params, []api.ValueType{f.result}).
			Export(f.name)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

func refused(errno abi.Errno) int64 { return -int64(errno) }

func answerSize(_ context.Context, inv *invocation, _ api.Memory, args arguments) int64 {
	field := inv.field(abi.Field(args.i32(0)))
	if field == nil {
		return refused(abi.EINVAL)
	}
	return int64(len(field))
}

func answerRead(_ context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	field := inv.field(abi.Field(args.i32(0)))
	if field == nil {
		return refused(abi.EINVAL)
	}
	if uint64(args.u32(2)) < uint64(len(field)) {
		return refused(abi.E2BIG)
	}
	if !mem.Write(args.u32(1), field) {
		return refused(abi.EINVAL)
	}
	return int64(len(field))
}

func answerOutput(_ context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	if inv.request == nil {
		return refused(abi.EINVAL)
	}
	output, errno := take(mem, args.u32(0), args.u32(1), inv.limits.Output)
	if errno != 0 {
		inv.oversized = inv.oversized || errno == abi.E2BIG
		return refused(errno)
	}
	inv.output, inv.oversized = output, false
	return 0
}

func answerFail(_ context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	if inv.request == nil {
		return refused(abi.EINVAL)
	}
	text, errno := take(mem, args.u32(0), args.u32(1), inv.limits.Output)
	if errno != 0 {
		return refused(errno)
	}
	failure := new(abi.Failure)
	if run.CheckPayload(text) != nil || json.Unmarshal(text, failure) != nil {
		return refused(abi.EINVAL)
	}
	inv.failure = failure
	return 0
}

func answerLog(_ context.Context, inv *invocation, mem api.Memory, args arguments) int64 {
	// A message that is too long is cut; no more of it is copied than is kept.
	length := min(int64(args.u32(2)), int64(inv.log.maxText())+1)
	message, errno := take(mem, args.u32(1), uint32(length), length)
	if errno != 0 {
		return refused(errno)
	}
	fields, errno := take(mem, args.u32(3), args.u32(4), int64(inv.log.maxText()))
	if errno != 0 {
		return refused(errno)
	}
	if len(fields) == 0 {
		fields = nil
	} else if !isObject(fields) {
		return refused(abi.EINVAL)
	}
	inv.log.add(abi.Level(args.i32(0)), string(message), fields)
	return 0
}

func answerTimeLeft(ctx context.Context, inv *invocation, _ api.Memory, _ arguments) int64 {
	deadline, ok := ctx.Deadline()
	if !ok || inv.request == nil {
		return -1
	}
	left := max(time.Until(deadline), 0) + time.Millisecond - 1 // rounded up: 0 means that it has passed
	return left.Milliseconds()
}

func answerShouldStop(_ context.Context, inv *invocation, _ api.Memory, _ arguments) int64 {
	return inv.grace.ask()
}

// take copies bytes out of the guest's memory: the guest may change it later.
func take(mem api.Memory, ptr, length uint32, limit int64) ([]byte, abi.Errno) {
	if int64(length) > limit {
		return nil, abi.E2BIG
	}
	view, ok := mem.Read(ptr, length)
	if !ok {
		return nil, abi.EINVAL
	}
	return append([]byte{}, view...), 0
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && run.CheckPayload(text) == nil
}
