package flows

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/run"
)

var formatSeeds = flag.Int("format.seeds", 100, "random flow files that are formatted")

// TestFormatKeepsTheMeaning formats random flow files: the same words in the same
// order, the same flows, and nothing to do the second time.
func TestFormatKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	seed := uint64(0)
	for kept := 0; kept < *formatSeeds; seed++ {
		src := randomFile(seed)
		before, ok := meaning(t, src)
		if !ok {
			continue // HCL takes no comment in some places
		}
		kept++
		formatted, diags := Format([]byte(src), "f.hcl")
		if diags.HasErrors() {
			t.Fatalf("seed %d: %v\n%s", seed, diags, src)
		}
		after, _ := meaning(t, string(formatted))
		if diff := cmp.Diff(tokensOf(t, src), tokensOf(t, string(formatted))); diff != "" {
			t.Errorf("seed %d: other words: %s\n%s\n%s", seed, diff, src, formatted)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("seed %d: another meaning: %s\n%s\n%s", seed, diff, src, formatted)
		}
		if again, _ := Format(formatted, "f.hcl"); string(again) != string(formatted) {
			t.Errorf("seed %d: formatted again: %s", seed, cmp.Diff(string(formatted), string(again)))
		}
		if t.Failed() {
			return
		}
	}
	if limit := uint64(*formatSeeds)*21/20 + 5; seed > limit {
		t.Errorf("%d files were written to have %d valid ones", seed, *formatSeeds)
	}
}

// tokensOf gives the tokens of a text, without the white space between them.
func tokensOf(t *testing.T, src string) []string {
	t.Helper()
	tokens, diags := hclsyntax.LexConfig([]byte(src), "f.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var out []string
	for _, token := range tokens {
		text := string(token.Bytes)
		if token.Type == hclsyntax.TokenComment || token.Type == hclsyntax.TokenCHeredoc {
			text = strings.TrimSpace(text)
		}
		out = append(out, text)
	}
	return out
}

// meaning is what a file loads to: the plan of each flow and what its expressions
// give in a run.
func meaning(t *testing.T, src string) (lines []string, ok bool) {
	t.Helper()
	set, diags := Restore(t.Context(), &run.Definition{Files: map[string][]byte{"f.hcl": []byte(src)}}, Options{})
	for _, f := range set.Flows {
		lines = append(lines, plan(f)...)
	}
	return lines, !diags.HasErrors()
}

// plan lists all that a flow says, each in a line, without where it is written.
func plan(f *Flow) []string {
	const payload = `{"total":1,"customer":"c","items":[{"x":null},{"x":2}],"n":5}`
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	say("flow %s %q %v %s %v", f.Name, f.Description, f.Labels, f.Timeout, f.Concurrency != nil)
	for _, p := range f.Params {
		say("param %s %q %#v %v %s %v", p.Name, p.Description, p.Type, p.Required, p.Default, p.Sensitive)
	}
	for _, g := range f.Triggers {
		shown := *g
		shown.after, shown.Range, shown.filter, shown.params, shown.payloads, shown.Schedule = hcl.Range{}, hcl.Range{}, nil, nil, nil, nil
		a, err := f.Admit(request(g.Name, payload))
		say("trigger %+v %+v %v", shown, a, err)
	}
	var edges []string // JSON has the waits behind the tasks
	for _, e := range f.Edges() {
		edges = append(edges, fmt.Sprintf("edge %s %s %s", e.From, e.To, e.Via))
	}
	out = append(out, slices.Sorted(slices.Values(edges))...)
	r := aRun(f, payload, nil)
	s := f.Scope(r)
	for _, section := range f.Sections {
		for _, g := range section.Groups {
			when, failed := g.When(s)
			say("group %s %s %d %v %s", g.Name, g.Mode, g.MaxParallel, when, messageOf(failed))
			for _, m := range g.Members {
				say("  member %s", m.Name())
			}
		}
	}
	tasks := f.AllTasks()
	slices.SortStableFunc(tasks, func(a, b *Task) int { return strings.Compare(a.kind(), b.kind()) })
	for _, task := range tasks {
		when, failed := task.When(s)
		say("task %s %q %+v %s %s %s %s %+v %+v %d %s", task.Name, task.Description, task.Plugin, task.Flow, task.Function, task.RunOn, task.Timeout, task.Retry, task.Limits, task.Priority, grantsText(&task.Grants))
		say("  when %v %s each %v continue %v parallel %d", when, messageOf(failed), task.FanOut, task.Continue, task.MaxParallel)
		failed, _ = play(s, r, task, payload, func() {
			input, wrong := task.Input(s)
			config, bad := task.Config(s)
			if task.Wait != nil {
				awaited, failed := task.Await(s, time.Unix(0, 0))
				say("  wait %s %s %q %+v %s", task.Wait.For, task.Wait.Timeout, task.Wait.knownSubject, awaited, messageOf(failed))
			}
			say("  input %s %s config %s %s", input, messageOf(wrong), config, messageOf(bad))
		})
		say("  items %s", messageOf(failed))
	}
	result, failed := f.Output(s)
	say("output %s %s", result, messageOf(failed))
	return out
}

func (t *Task) kind() string {
	if t.isWait() {
		return "wait"
	}
	return "task"
}

func messageOf(f *run.Failure) string {
	if f == nil {
		return ""
	}
	return f.Message
}

func grantsText(g *run.Grants) string {
	text, err := json.Marshal(g)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
