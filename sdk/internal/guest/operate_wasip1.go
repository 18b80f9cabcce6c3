package guest

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/flowhost/flowhost/sdk/abi"
)

//go:wasmimport flowhost:task/v1 op_start
func importOpStart(kind unsafe.Pointer, kindLen uint32, head unsafe.Pointer, headLen uint32, body unsafe.Pointer, bodyLen uint32) int32

//go:wasmimport flowhost:task/v1 op_wait
func importOpWait(tickets unsafe.Pointer, count uint32, timeout int32) int32

//go:wasmimport flowhost:task/v1 op_read
func importOpRead(ticket, part int32, offset uint32, ptr unsafe.Pointer, length uint32) int32

//go:wasmimport flowhost:task/v1 op_close
func importOpClose(ticket int32) int32

// Alone performs an operation by the imports, which stop all goroutines of the guest and take
// a third of the time.
func (Imports) Alone(kind string, head, body []byte, windsDown bool) (Reply, error) {
	return askAlone(kind, head, body, windsDown)
}

func askAlone(kind string, head, body []byte, windsDown bool) (Reply, error) {
	t, err := start(kind, head, body)
	if err != nil {
		return Reply{}, err
	}
	defer t.Close()
	return t.Wait(nil, windsDown)
}

// Begin implements [Host].
func (Imports) Begin(kind string, head, body []byte) (Pending, error) { return start(kind, head, body) }

func start(kind string, head, body []byte) (ticket, error) {
	headPtr, headLen := view(head)
	bodyPtr, bodyLen := view(body)
	t := importOpStart(unsafe.Pointer(unsafe.StringData(kind)), uint32(len(kind)), headPtr, headLen, bodyPtr, bodyLen)
	if t < 0 {
		return 0, refusal(abi.Errno(-t))
	}
	return ticket(t), nil
}

// ticket is an operation of the host.
type ticket int32

// Wait implements [Pending].
func (t ticket) Wait(into []byte, windsDown bool) (Reply, error) {
	for importOpWait(unsafe.Pointer(&t), 1, -1) == -int32(abi.EAGAIN) {
		if !windsDown { // the call is being canceled
			return Reply{}, context.Canceled
		}
	}
	answer := readPart(int32(t), abi.PartHead)
	size := importOpRead(int32(t), abi.PartBody, 0, nil, 0)
	if size < 0 {
		return Reply{}, faultOf(answer)
	}
	return Reply{Head: answer, Body: readSized(int32(t), abi.PartBody, size, into)}, nil
}

// Close implements [Pending].
func (t ticket) Close() { importOpClose(int32(t)) }

// firstRead is the size of heads that are read without asking for it before.
const firstRead = 512

func readPart(ticket, part int32) []byte {
	data := make([]byte, firstRead)
	ptr, length := view(data)
	n := importOpRead(ticket, part, 0, ptr, length)
	if n < 0 {
		return nil
	}
	if n < firstRead {
		return data[:n]
	}
	return readSized(ticket, part, importOpRead(ticket, part, 0, nil, 0), nil)
}

// readSized reads into a buffer if it is large enough, otherwise into a new one.
func readSized(ticket, part, size int32, into []byte) []byte {
	if size <= 0 {
		return nil
	}
	if cap(into) < int(size) {
		into = make([]byte, size)
	}
	data := into[:size]
	ptr, length := view(data)
	importOpRead(ticket, part, 0, ptr, length)
	return data
}

// refusal is why an operation was not started.
func refusal(errno abi.Errno) *abi.Fault {
	switch errno {
	case abi.EMFILE, abi.ENOSPC:
		return &abi.Fault{Code: "budget", Message: "the attempt has used up its operations, or too many are open"}
	case abi.E2BIG:
		return &abi.Fault{Code: "too_large", Message: "the body or the head of the operation is too large"}
	}
	return &abi.Fault{Code: "invalid", Message: fmt.Sprintf("the host does not start the operation: errno %d", errno)}
}

// faultOf is the head of an answer as the error that it is.
func faultOf(head []byte) *abi.Fault {
	f := new(abi.Fault)
	Members(head, func(name string, value []byte) {
		switch name {
		case "code":
			f.Code = TextOf(value)
		case "message":
			f.Message = TextOf(value)
		case "target":
			f.Target = TextOf(value)
		case "rule":
			f.Rule = TextOf(value)
		case "add":
			f.Add = TextOf(value)
		case "detail":
			f.Detail = TextOf(value)
		case "retryable":
			f.Retryable = string(value) == "true"
		case "retry_after_ms":
			f.RetryAfterMS = IntOf(value)
		}
	})
	return f
}
