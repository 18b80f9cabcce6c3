package schedsim

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is when virtual time begins in bubbles of synctest.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// catalog knows every module: it has the one function "run".
type catalog struct{}

func (catalog) Signature(ctx context.Context, path string) (run.Signature, error) {
	return catalog{}.SignatureOf(ctx, "sha256:"+filepath.Base(path))
}

func (catalog) SignatureOf(_ context.Context, digest string) (run.Signature, error) {
	return run.Signature{Digest: digest, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "run"}}}, nil
}

func load(t testing.TB, source string) *flows.Set {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.hcl")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{file}, flows.Options{Catalog: catalog{}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return set
}

// scheduled is a flow of one schedule with further arguments and one task.
func scheduled(arguments string) string {
	return "flow \"f\" {\n  trigger \"schedule\" \"s\" {\n" + arguments + "\n  }\n  task \"a\" { plugin = \"./m.wasm\" }\n}\n"
}

// simulate simulates flows from the epoch on.
func simulate(t testing.TB, source string, lasts time.Duration, c Config) *Report {
	t.Helper()
	c.Flows, c.From, c.To = load(t, source).Flows, epoch, epoch.Add(lasts)
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at is an instant in a zone, from RFC 3339 and a name.
func at(t testing.TB, instant, zone string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		t.Fatal(err)
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.In(l)
}
