package flows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/run"
)

// inAFlow loads a flow that consists of this.
func inAFlow(t testing.TB, body string) (*Set, hcl.Diagnostics) {
	t.Helper()
	return Restore(t.Context(), &run.Definition{Files: map[string][]byte{"f.hcl": []byte("flow \"f\" {\n" + body + "}\n")}}, Options{})
}

func aTask(name, words string) string {
	return fmt.Sprintf("task %q {\n  plugin = \"./tool.wasm\"\n%s\n}\n", name, words)
}

// nestedGroups are groups within each other, the innermost of which holds a task.
func nestedGroups(depth int, words string) string {
	src := strings.Builder{}
	for i := range depth {
		fmt.Fprintf(&src, "group \"g%d\" {\n%s\n", i, words)
	}
	return src.String() + aTask("t", "") + strings.Repeat("}\n", depth)
}

func TestGroupsNestToSomeDepth(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int][]Rule{
		maxGroups:     nil,
		maxGroups + 1: {RuleStructure},
		900:           {RuleStructure},
		1100:          {RuleSyntax}, // the parser is not asked
	} {
		for _, mode := range groupSchema.Argument("mode").OneOf {
			set, diags := inAFlow(t, nestedGroups(depth, fmt.Sprintf("mode = %q\nwhen = run.id != \"x\"", mode)))
			var rules []Rule
			for _, d := range diags {
				rules = append(rules, RuleOf(d))
			}
			if !slices.Equal(rules, want) {
				t.Errorf("%d deep: %s", depth, text(set, diags))
			}
		}
	}
}

func TestEdgesOfGroups(t *testing.T) {
	t.Parallel()
	set, diags := inAFlow(t, aTask("a", "")+aTask("b", "")+
		"group \"parallel\" {\n"+aTask("p1", "after = [task.a]")+"}\n"+
		"group \"serial\" {\nmode = \"serial\"\nafter = [group.parallel]\n"+aTask("s1", "")+aTask("s2", "input = task.s1.output")+aTask("s3", "input = task.a.output")+"}\n"+
		"group \"tries\" {\nmode = \"first_success\"\nwhen = task.a.state != \"\"\n"+aTask("f1", "")+"group \"inner\" {\n"+aTask("f2", "after = [task.b]\nrun_on = \"always\"")+"}\n}\n"+
		aTask("end", "input = [group.tries.output, task.f2.output]"))
	if diags.HasErrors() {
		t.Fatal(text(set, diags))
	}
	want := []Edge{
		{From: "a", To: "p1", Via: ViaAfter},
		{From: "s1", To: "s2", Via: ViaReference}, // which is the order, too
		{From: "a", To: "s3", Via: ViaReference},
		{From: "b", To: "f2", Via: ViaAfter},
		{From: "group.tries", To: "end", Via: ViaReference},
		{From: "f2", To: "end", Via: ViaReference},
		{From: "group.parallel", To: "group.serial", Via: ViaAfter},
		{From: "a", To: "group.serial", Via: ViaMember},
		{From: "a", To: "group.tries", Via: ViaReference},
		{From: "b", To: "group.tries", Via: ViaMember}, // which decides nothing, and orders
		{From: "s2", To: "s3", Via: ViaOrder},
		{From: "f1", To: "group.inner", Via: ViaOrder},
	}
	if diff := cmp.Diff(want, set.Flows[0].Edges(), cmpopts.IgnoreTypes(hcl.Range{})); diff != "" {
		t.Error(diff)
	}
	s := set.Flows[0].Section(PartMain)
	for _, g := range s.Groups {
		if g.Name == "tries" && len(s.Nodes[g.Begin].Needs) != 1 {
			t.Errorf("the group needs %v: a member that runs in any case decides nothing", s.Nodes[g.Begin].Needs)
		}
	}
}

// A group that begins after what a member of it only follows can be in a circle, too.
func TestACircleThroughWhatOnlyOrders(t *testing.T) {
	t.Parallel()
	set, diags := inAFlow(t, "group \"g\" {\nmode = \"race\"\n"+aTask("a", "")+aTask("b", "run_on = \"always\"\nafter = [task.x]")+"}\n"+aTask("x", "after = [task.a]"))
	const want = "task.x needs task.a (f.hcl:16), group.g needs task.x for a member (f.hcl:11), task.a is in group.g (f.hcl:2)."
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, want) {
		t.Errorf("%s", text(set, diags))
	}
}

func TestALongCircle(t *testing.T) {
	t.Parallel()
	const n = 3000
	var body strings.Builder
	for i := range n {
		body.WriteString(aTask(fmt.Sprint("t", i), fmt.Sprintf("after = [task.t%d]", (i+1)%n)))
	}
	_, diags := inAFlow(t, body.String())
	if len(diags) != 1 || len(diags[0].Detail) > 4000 || !strings.Contains(diags[0].Detail, fmt.Sprintf("and %d more on the way back to task.t", n-maxLinks)) {
		t.Errorf("%d diagnostics, %.500s", len(diags), diags[0].Detail)
	}
}

// BenchmarkLoadGroup loads one group of many members, each of which needs another
// task outside of it.
func BenchmarkLoadGroup(b *testing.B) {
	for _, mode := range groupSchema.Argument("mode").OneOf {
		b.Run(mode, func(b *testing.B) {
			const n = 5000
			var body, inside strings.Builder
			for i := range n {
				body.WriteString(aTask(fmt.Sprint("u", i), ""))
				inside.WriteString(aTask(fmt.Sprint("t", i), fmt.Sprintf("after = [task.u%d]", i)))
			}
			source := fmt.Sprintf("%sgroup \"g\" {\nmode = %q\n%s}\n", body.String(), mode, inside.String())
			for b.Loop() {
				if set, diags := inAFlow(b, source); diags.HasErrors() {
					b.Fatal(text(set, diags))
				}
			}
		})
	}
}
