// Command door is a plugin that performs operations as its input states them, without the SDK.
package main

import (
	"fmt"
	"unsafe"

	"github.com/flowhost/flowhost/sdk"
)

func init() {
	sdk.Function("operations", operations)
	sdk.Function("together", together)
}

func main() {}

//go:wasmimport flowhost:task/v1 op_start
func opStart(kind unsafe.Pointer, kindLen int32, head unsafe.Pointer, headLen int32, body unsafe.Pointer, bodyLen int32) int32

//go:wasmimport flowhost:task/v1 op_wait
func opWait(tickets unsafe.Pointer, count, timeout int32) int32

//go:wasmimport flowhost:task/v1 op_read
func opRead(ticket, part, offset int32, ptr unsafe.Pointer, length int32) int32

//go:wasmimport flowhost:task/v1 op_close
func opClose(ticket int32) int32

type operation struct {
	Kind, Head, Body string
	Filler           int // bytes of the body instead
	Times            int // default 1
}

// operations performs operations as they are, one after the other, without the SDK, and gives
// the last answer to each: its head, or the number of the refusal.
func operations(_ sdk.Context, all []operation) ([]string, error) {
	var answers []string
	for _, o := range all {
		if o.Filler > 0 {
			o.Body = string(make([]byte, o.Filler))
		}
		var answer string
		for range max(o.Times, 1) {
			answer = operate(o)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// together has one operation under way many times at once, and gives the answer to each.
func together(_ sdk.Context, o operation) ([]string, error) {
	o.Body += string(make([]byte, o.Filler))
	var tickets []int32
	for range o.Times {
		tickets = append(tickets, start(o))
	}
	var answers []string
	for _, ticket := range tickets {
		answers = append(answers, await(ticket))
	}
	return answers, nil
}

func operate(o operation) string {
	ticket := start(o)
	defer opClose(ticket)
	return await(ticket)
}

// start gives a ticket, or a negative number.
func start(o operation) int32 {
	pointer := func(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
	return opStart(pointer(o.Kind), int32(len(o.Kind)), pointer(o.Head), int32(len(o.Head)), pointer(o.Body), int32(len(o.Body)))
}

func await(ticket int32) string {
	if ticket < 0 {
		return fmt.Sprint(ticket)
	}
	opWait(unsafe.Pointer(&ticket), 1, -1)
	head := make([]byte, opRead(ticket, 0, 0, nil, 0))
	if len(head) > 0 {
		opRead(ticket, 0, 0, unsafe.Pointer(unsafe.SliceData(head)), int32(len(head)))
	}
	return string(head)
}
