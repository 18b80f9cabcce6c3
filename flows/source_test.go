//go:build unix

package flows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a pipe waits for a writer, which may never come.
func TestPipesAreNotRead(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": "locals {\n  text = file(\"data\")\n}\n" + smallFlow("a")})
	for _, name := range []string{"pipe.hcl", "data"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if got := text(set, diags); strings.Count(got, "is not a regular file") != 2 || len(diags) != 2 {
		t.Error(got)
	}
}

func TestErrorsOfFilesWithoutSystemCalls(t *testing.T) {
	t.Parallel()
	_, missing := os.Lstat("missing")
	for want, err := range map[string]error{
		"missing: no such file or directory":       missing,
		"of a: missing: no such file or directory": fmt.Errorf("of a: %w", missing),
		"another": errors.New("another"),
	} {
		if got := plainly(err); got != want {
			t.Errorf("%s: %s", err, got)
		}
	}
}
