package access

import "context"

type roomKey struct{}

// WithRoom returns the context of an operation with the function that reserves memory for
// its answer.
func WithRoom(ctx context.Context, take func(bytes int) bool) context.Context {
	return context.WithValue(ctx, roomKey{}, take)
}

// Reserve reserves memory for a part of an operation's answer before the rest of it is
// known, and reports whether there is room. A negative number gives back what was reserved
// and is dropped. What an answer has at its end is counted without it.
func Reserve(ctx context.Context, bytes int) bool {
	take, ok := ctx.Value(roomKey{}).(func(int) bool)
	return !ok || take(bytes)
}

// NoRoom is the fault of an operation whose answer found no room.
func NoRoom() *Fault {
	return &Fault{
		Code:    CodeBudget,
		Message: "the answer does not fit: the call holds too many bytes of operations, or the host is short of memory; close operations that are read",
	}
}
