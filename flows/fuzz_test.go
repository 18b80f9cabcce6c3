package flows

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

// FuzzLoad loads a file in either syntax. Whatever it holds, nothing panics,
// every diagnostic is complete, and flows without errors can be restored to the
// same definition and evaluated.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.hcl*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, filepath.Ext(file) == ".json")
	}
	f.Add([]byte(paramsFlow), false)
	f.Add([]byte(variablesFlow), false)
	for seed := range uint64(30) {
		f.Add([]byte(randomFile(seed)), false)
	}
	f.Fuzz(func(t *testing.T, src []byte, asJSON bool) {
		name := "f.hcl"
		if asJSON {
			name = "f.hcl.json"
		}
		definition := &run.Definition{Files: map[string][]byte{name: src}}
		set, diags := Restore(t.Context(), definition, Options{})
		DiagnosticsJSON(diags, set.Files())
		text(set, diags)
		for _, d := range diags {
			if RuleOf(d) == "" || d.Subject == nil {
				t.Fatalf("incomplete: %#v", d)
			}
		}
		if diags.HasErrors() {
			return
		}
		for _, f := range set.Flows {
			exercise(t, f)
			again, diags := Restore(t.Context(), f.Definition, Options{})
			if diags.HasErrors() || again.Flow(f.Name).DefinitionDigest != f.DefinitionDigest {
				t.Fatalf("not restored: %v", diags)
			}
		}
	})
}

// exercise evaluates everything of a flow with some data.
func exercise(t *testing.T, f *Flow) {
	const payload = `{"total":1,"customer":"c","items":[{"x":null}],"n":5}`
	for _, trigger := range append(f.Triggers, new(Trigger)) {
		f.Admit(request(trigger.Name, payload))
	}
	r := aRun(f, payload, nil)
	s := f.Scope(r)
	for _, task := range f.AllTasks() {
		task.When(s)
		play(s, r, task, payload, func() {
			task.Input(s)
			if task.Wait != nil {
				task.Await(s, time.Unix(0, 0))
			}
			task.Config(s)
			task.Again(s, &run.Failure{Outcome: run.OutcomeFailed, Details: []byte(payload)}, 0, 0)
		})
	}
	for _, section := range f.Sections {
		for _, g := range slices.Backward(section.Groups) { // those within it first
			g.When(s)
			s.Settle(done("group."+g.Name, ""))
		}
	}
	for _, subject := range f.WaitSubjects() {
		if !isSubject(subject) {
			t.Fatalf("%q is foreseen", subject)
		}
	}
	s.Failed(&run.Failure{Task: "t"})
	if out, failure := f.Output(s); failure == nil && len(out) < 2 {
		t.Fatalf("output %q", out)
	}
}
