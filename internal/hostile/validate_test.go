package hostile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bounds of flowhost validate, which an editor and a pipeline run on files that
// others wrote.
const (
	validateTime   = 5 * time.Second // of processors
	validateMemory = 1 << 10         // MiB
	validateGiveUp = 5 * time.Minute // of a machine that is busy with other things
)

// TestValidate measures validate on every hostile file. The sample is the
// expressions that have cost most.
func TestValidate(t *testing.T) {
	sample := []string{"expression/substr", "expression/setproduct", "number of an exponent", "many crons", "200 lists", "100000 lists"}
	for _, f := range hostileFiles() {
		name := "validate/" + f.name
		if chosen(name, slices.Contains(sample, f.name)) {
			t.Run(f.name, func(t *testing.T) { validate(t, name, f.text()) })
		}
	}
}

// validate runs the program on a file. Whether the file is valid does not matter.
func validate(t *testing.T, name, text string) {
	dir := t.TempDir()
	for _, guest := range []string{"unruly.wasm", "flood-cmd.wasm"} {
		if err := os.Link(filepath.Join(built.guests, guest), filepath.Join(dir, guest)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "attacker.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), validateGiveUp)
	defer cancel()
	program := built.program
	program.Env = nil
	cmd := program.Command("validate", dir)
	out, peak := runMeasured(ctx, t, cmd)
	state := cmd.ProcessState
	used := state.UserTime() + state.SystemTime()
	t.Logf("%-60s exit %d, %6.2f s of processor, %5d MiB: %s", name, state.ExitCode(), used.Seconds(), peak, firstProblem(out))
	if used > validateTime {
		t.Errorf("%s used %v of processor, bound %v", name, used, validateTime)
	}
	if peak > validateMemory {
		t.Errorf("%s took %d MiB, bound %d", name, peak, validateMemory)
	}
	if code := state.ExitCode(); code != 0 && code != 2 {
		t.Errorf("%s ended with %d (%s):\n%s", name, code, state, clip(out))
	}
}

// runMeasured runs a command to its end and kills it when it takes far too much. The
// peak of its memory is what was seen last: what rusage has includes that of the
// test's own process, of which it began as a copy.
func runMeasured(ctx context.Context, t *testing.T, cmd *exec.Cmd) (text []byte, peak int64) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait() // its error is in the state of the process too
	}()
	look := time.NewTicker(lookPace / 5)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return out.Bytes(), peak
		case <-look.C:
			peak = max(peak, statusOf(cmd.Process.Pid, "VmHWM:"))
			if peak > mostMemory || processorTime(cmd.Process.Pid) > 2*validateTime {
				cmd.Process.Kill()
			}
		case <-ctx.Done():
			cmd.Process.Kill()
			<-ended
			return out.Bytes(), peak
		}
	}
}

// firstProblem is the first line of what validate reports that names one.
func firstProblem(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "rror") || strings.Contains(line, "attacker.hcl:") {
			return fmt.Sprintf("%.100s", strings.TrimSpace(line))
		}
	}
	return fmt.Sprintf("%.60s", strings.TrimSpace(string(out)))
}
