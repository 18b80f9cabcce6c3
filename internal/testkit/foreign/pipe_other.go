//go:build !unix

package foreign

import (
	"os"
	"testing"
)

func pipe(t testing.TB, path string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte("no FIFO"), 0o600))
}
