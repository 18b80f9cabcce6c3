//go:build !unix || solaris || aix

package natsd

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockDir fails: without the lock two engines could open one data directory. An
// external NATS server can be used on every system.
func lockDir(string) (*os.File, error) {
	return nil, fmt.Errorf("the embedded NATS server on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
