package flows

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// An output that is stored as an artifact is passed on whole. Expressions that look into it
// fail with their place, the limit and the ways around it.
func TestStoredOutput(t *testing.T) {
	t.Parallel()
	stored := string(run.StoredOutput("sha256:"+strings.Repeat("a", 64), 5<<20))
	const refused = "stored as an artifact, which expressions do not open: it has 5242880 bytes of JSON, and 4194304 are the most that are recorded; pass it on whole, read it in a task with ctx.OpenArtifact, or return less"
	for expr, want := range map[string]string{
		`task.big.output`:                          stored,
		`{ a = task.big.output, b = 1 }`:           `{"a":` + stored + `,"b":1}`,
		`[task.big.output]`:                        `[` + stored + `]`,
		`task.big.output.size`:                     `5242880`,
		`{ d = task.big.output["$artifact"] }`:     `{"d":"sha256:` + strings.Repeat("a", 64) + `"}`,
		`"${task.big.output.size} bytes"`:          `"5242880 bytes"`,
		`task.big.output.rows`:                     refused,
		`task.big.output.rows[0].name`:             refused,
		`task.big.output["rows"]`:                  refused,
		`{ a = task.big.output.rows, b = 1 }`:      refused,
		`length(task.big.output)`:                  refused,
		`jsonencode(task.big.output)`:              refused,
		`try(task.big.output.rows, "none")`:        refused,
		`task.big.output == null`:                  refused,
		`[for k, v in task.big.output : k]`:        refused,
		`task.big.output.size + task.big.output.n`: refused,
	} {
		f := oneFlow(t, "flow \"f\" {\n  task \"big\" {\n    plugin = \"./greet.wasm\"\n  }\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = "+expr+"\n  }\n}\n")
		s := f.Scope(aRun(f, "null", nil))
		s.Settle(done("big", stored))
		got, failure := f.Tasks[1].Input(s)
		if failure != nil {
			got = json.RawMessage(failure.Message)
			if !strings.HasSuffix(failure.At, ":7") || failure.Code != run.CodeExpression || !strings.Contains(failure.Message, "big") {
				t.Errorf("%s: %+v", expr, failure)
			}
		}
		if failure == nil && string(got) != want || failure != nil && !strings.Contains(string(got), want) {
			t.Errorf("%s: %s", expr, got)
		}
	}
}

func TestStoredOutputHasNoItems(t *testing.T) {
	t.Parallel()
	for _, each := range []string{"task.big.output", "task.big.output.rows"} {
		f := oneFlow(t, "flow \"f\" {\n  task \"big\" {\n    plugin = \"./greet.wasm\"\n  }\n  task \"t\" {\n    plugin   = \"./greet.wasm\"\n    for_each = "+each+"\n  }\n}\n")
		s := f.Scope(aRun(f, "null", nil))
		s.Settle(done("big", string(run.StoredOutput("sha256:"+strings.Repeat("a", 64), 5<<20))))
		items, failure := f.Tasks[1].Items(s)
		if failure == nil || !strings.HasSuffix(failure.At, ":7") || !strings.Contains(failure.Message, "for_each: task.big.output is stored as an artifact") {
			t.Errorf("%s: %s, %+v", each, items, failure)
		}
	}
}
