package guest

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/flowhost/flowhost/sdk/abi"
)

// The imports of abi.Module; their types and results are described there.

//go:wasmimport flowhost:task/v1 size
func importSize(field abi.Field) int32

//go:wasmimport flowhost:task/v1 read
func importRead(field abi.Field, ptr unsafe.Pointer, capacity uint32) int32

//go:wasmimport flowhost:task/v1 output
func importOutput(ptr unsafe.Pointer, length uint32) int32

//go:wasmimport flowhost:task/v1 fail
func importFail(ptr unsafe.Pointer, length uint32) int32

//go:wasmimport flowhost:task/v1 log
func importLog(level abi.Level, message unsafe.Pointer, messageLen uint32, fields unsafe.Pointer, fieldsLen uint32) int32

//go:wasmimport flowhost:task/v1 time_left
func importTimeLeft() int64

//go:wasmimport flowhost:task/v1 should_stop
func importShouldStop() int32

// Imports is the [Host] of a guest that runs in one.
type Imports struct{}

// Read copies a field of the call out of the host.
func (Imports) Read(field abi.Field) ([]byte, error) {
	size := importSize(field)
	if size < 0 {
		return nil, fmt.Errorf("the size of field %d: errno %d", field, -size)
	}
	data := make([]byte, size)
	ptr, length := view(data)
	if n := importRead(field, ptr, length); n != size {
		return nil, fmt.Errorf("field %d: %d bytes were announced, reading them gave %d", field, size, n)
	}
	return data, nil
}

// Output hands the output to the host.
func (Imports) Output(data []byte) error {
	switch code := importOutput(view(data)); code {
	case 0:
		return nil
	case -int32(abi.E2BIG):
		return ErrOutputSize
	default:
		return fmt.Errorf("setting the output: errno %d", -code)
	}
}

// Fail hands the failure to the host.
func (Imports) Fail(failure []byte) { importFail(view(failure)) }

// Log hands one line to the host.
func (Imports) Log(level abi.Level, message string, fields []byte) {
	ptr, length := view(fields)
	importLog(level, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)), ptr, length)
}

// TimeLeft asks the host for the time until the deadline.
func (Imports) TimeLeft() (time.Duration, bool) {
	left := importTimeLeft()
	return time.Duration(max(left, 0)) * time.Millisecond, left >= 0
}

// Canceled asks the host whether the call is being canceled.
func (Imports) Canceled() (left time.Duration, canceled bool) {
	left = time.Duration(importShouldStop()) * time.Millisecond
	return left, left > 0
}

// watchInterval is how often a guest that waits looks up. It may be long, as the
// host cuts the sleeps of a call that is canceled short, and should be: each look
// takes some steps of the guest's clock from what it sleeps.
const watchInterval = time.Second

// Wait lets the interval pass.
func (Imports) Wait(stop <-chan struct{}) bool {
	timer := time.NewTimer(watchInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

func view(data []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data))
}
