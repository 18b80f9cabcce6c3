package crashtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProcess starts a program that ends by itself.
func TestProcess(t *testing.T) {
	t.Parallel()
	program := built.program
	program.Log = filepath.Join(t.TempDir(), "log")
	p, err := program.Start("version")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := p.Await(ctx, "flowhost"); err != nil {
		t.Error(err)
	}
	if err := p.Await(ctx, "something else"); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("awaiting what is not said gives %v", err)
	}
	<-p.Ended()
	if p.ExitCode() != 0 {
		t.Errorf("exit code %d; it said:\n%s", p.ExitCode(), p.Output())
	}
	log, err := os.ReadFile(program.Log)
	if err != nil || string(log) != p.Output() {
		t.Errorf("the log is %q, %v, and the output %q", log, err, p.Output())
	}
}
