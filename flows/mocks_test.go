package flows

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

// TestLoadMocks holds whose calls are mocked, and what of them is left open.
func TestLoadMocks(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"f.hcl": smallFlow("f") + smallFlow("g"), "below/f.hcl": smallFlow("f"),
		"f.test.hcl": `
mock "t" {
  output = attempt + 1
  takes  = "${attempt}s"
}
test "of a flow" {
  flow = "f"
  mock "t" {
    fail = {}
  }
}`,
		"other.test.hcl": `
mock "t" {
  fail  = {}
  times = 1
}`,
		"bad.test.hcl":  "mock \"b\" {\n}\nmock \"t\" {\n  takes = 5\n}\n",
		"none.test.hcl": "mock \"t\" {",
	})
	load := func(file string) (*Suite, string) {
		suite, diags := LoadMocks(t.Context(), []string{root}, filepath.Join(root, file), Options{Catalog: modules})
		return suite, text(suite.Set, diags)
	}
	call := &run.Call{Task: "t", Attempt: 2}

	suite, problems := load("f.test.hcl")
	var names []string
	for _, test := range suite.Tests {
		names = append(names, test.Flow.Name)
		if suite.Flow(test.Flow.Name) != test.Flow {
			t.Errorf("%s is another flow than that of the set", test.Flow.Name)
		}
	}
	if want := []string{"f", "g"}; problems != "" || !slices.Equal(names, want) || len(suite.Flows) != 3 {
		t.Fatalf("mocks of %v, want %v: %s", names, want, problems)
	}
	mocked, diags := suite.Tests[0].Mock(Called{Call: call, Path: call.Task})
	if diags.HasErrors() || string(mocked.Result.Output) != "3" || mocked.Takes != 2*time.Second || !mocked.Timed || mocked.Decided {
		t.Errorf("the call: %+v %v", mocked, diags)
	}
	if mocked, _ := suite.Tests[0].Mock(Called{Call: &run.Call{Task: "none", Attempt: 1, Input: json.RawMessage("1")}, Path: "none"}); mocked != nil {
		t.Errorf("a task without a mock: %+v", mocked)
	}

	suite, problems = load("other.test.hcl")
	if mocked, _ := suite.Tests[1].Mock(Called{Call: call, Path: call.Task}); problems != "" || mocked.Timed || !mocked.Decided || mocked.Result.Outcome != run.OutcomeSucceeded {
		t.Errorf("the call: %+v %s", mocked, problems)
	}
	for file, want := range map[string]string{
		"bad.test.hcl": `No flow in the directory has a task "b"`, "none.test.hcl": "Unclosed configuration block", "missing.test.hcl": "No such file",
	} {
		if _, problems := load(file); !strings.Contains(strings.Join(strings.Fields(problems), " "), want) {
			t.Errorf("%s: %s\nis not %q", file, problems, want)
		}
	}
}
