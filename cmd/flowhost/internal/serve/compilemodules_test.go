package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// namedModules is a catalog in which each file is a module with its name as its digest.
type namedModules struct{}

func (namedModules) Signature(_ context.Context, path string) (run.Signature, error) {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return run.Signature{Digest: name, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "main"}}}, nil
}

func (namedModules) SignatureOf(context.Context, string) (run.Signature, error) {
	return run.Signature{}, os.ErrNotExist
}

func TestModulesAreCompiledAsTheyAreDue(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for flow, trigger := range map[string]string{
		"a": "", "b": `trigger "schedule" "late" { cron = "0 12 * * *" }`, "c": `trigger "schedule" "soon" { cron = "0 11 * * *" }`,
		"d": "trigger \"schedule\" \"never\" {\n cron = \"30 10 * * *\"\n enabled = false\n}",
	} {
		fmt.Fprintf(&source, "flow %q {\n%s\n task \"own\" {\n plugin = \"./%s.wasm\"\n }\n task \"shared\" {\n plugin = \"./shared.wasm\"\n }\n}\n", flow, trigger, flow)
	}
	path := filepath.Join(t.TempDir(), "flows.hcl")
	if err := os.WriteFile(path, []byte(source.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{path}, flows.Options{Catalog: namedModules{}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	var asked []string
	var text strings.Builder
	compileModules(t.Context(), func(_ context.Context, digest string) (bool, error) {
		asked = append(asked, digest)
		if digest == "b" {
			return true, errors.New("too large")
		}
		return digest != "a", nil
	}, set, now, slog.New(slog.NewTextHandler(&text, nil)))
	if want := []string{"c", "shared", "b", "a", "d"}; !slices.Equal(asked, want) {
		t.Errorf("%q, want %q", asked, want)
	}
	for _, line := range []string{`level=ERROR msg="compiling a module failed, its calls are rejected" flow=b plugin=./b.wasm error="too large"`, `flow=c plugin=./c.wasm`, "compiled=3"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("the log does not contain %s: %s", line, &text)
		}
	}
	if strings.Contains(text.String(), "plugin=./a.wasm") {
		t.Errorf("the log mentions a module of which nothing was to be done: %s", &text)
	}

	// It ends when the host stops.
	ctx, cancel := context.WithCancel(t.Context())
	asked = nil
	compileModules(ctx, func(ctx context.Context, digest string) (bool, error) {
		asked = append(asked, digest)
		cancel()
		return true, ctx.Err()
	}, set, now, slog.New(slog.DiscardHandler))
	if len(asked) != 1 {
		t.Errorf("%q", asked)
	}
}
