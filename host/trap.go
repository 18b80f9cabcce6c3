package host

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/flowhost/flowhost/host/internal/wasi"
)

// guestError turns an error of wazero into one of the host's.
func (i *image) guestError(err error) error {
	for _, known := range []error{errInterrupted, errFuel, errDepth, errStack, errOutputSize} {
		if errors.Is(err, known) {
			return known
		}
	}
	if exit, ok := errors.AsType[*wasi.Exit](err); ok {
		return &exitError{status: exit.Status}
	}
	trap := newTrap(err)
	trap.trace = i.unshift(trap.trace)
	if strings.HasPrefix(trap.reason, "stack overflow") { // wazero's own bound, in bytes
		return errDepth
	}
	return trap
}

// newTrap parses wazero's error: the reason, then the guest's stack, and
// when a host function broke, the host's stack.
func newTrap(err error) *trapError {
	text, hostTrace, _ := strings.Cut(err.Error(), "Go runtime stack trace:")
	reason, trace, _ := strings.Cut(text, "\n")
	_, trace, _ = strings.Cut(trace, "\n") // without the headline
	return &trapError{
		reason:    strings.TrimPrefix(reason, "wasm error: "),
		trace:     strings.ReplaceAll(strings.TrimSpace(trace), "\t", ""),
		hostTrace: strings.TrimSpace(hostTrace),
	}
}

// newInstanceTrap is a panic of wazero while it made an instance. Memory that
// was refused explains it.
func newInstanceTrap(memory *linearMemory, recovered any) *trapError {
	trap := &trapError{reason: fmt.Sprintf("no instance can be made: %v", recovered)}
	if !memory.refused {
		trap.hostTrace = string(debug.Stack())
	}
	return trap
}

// frame is a function without a name in a trace of wazero's.
var frame = regexp.MustCompile(`(?m)^\.\$(\d+)\(`)

// maxName is the bytes of a function's name in a trace.
const maxName = 200

// unshift names the functions in a trace as the module's author does, or at least
// numbers them so: the rewrite drops names, and has inserted a function
// between those that are imported and the others.
func (i *image) unshift(trace string) string {
	return frame.ReplaceAllStringFunc(trace, func(found string) string {
		index, err := strconv.Atoi(frame.FindStringSubmatch(found)[1])
		switch {
		case err != nil || index < i.form.importedFunctions():
			return found
		case index == i.form.importedFunctions():
			return ".interrupt("
		}
		if name := i.names.Function(index - 1); name != "" {
			return "." + name[:min(len(name), maxName)] + "("
		}
		return fmt.Sprintf(".$%d(", index-1)
	})
}
