//go:build unix

package foreign

import (
	"syscall"
	"testing"
)

func pipe(t testing.TB, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o644))
}
