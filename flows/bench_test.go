package flows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

func BenchmarkLoad100Flows20Tasks(b *testing.B)  { benchLoad(b, 100, 20) }
func BenchmarkLoad1000Flows50Tasks(b *testing.B) { benchLoad(b, 1000, 50) }

// benchLoad loads flows of one module, each in a file of its own, whose tasks are
// in a row.
func benchLoad(b *testing.B, flows, tasks int) {
	files := map[string]string{"plugins.hcl": "plugin \"p\" {\n  source = \"./greet.wasm\"\n}\n"}
	for i := range flows {
		var src strings.Builder
		fmt.Fprintf(&src, "flow \"f%d\" {\n", i)
		for j := range tasks {
			fmt.Fprintf(&src, "  task \"t%d\" {\n    plugin  = plugin.p\n    timeout = \"5s\"\n", j)
			if j > 0 {
				fmt.Fprintf(&src, "    input   = { from = task.t%d.output.x, run = run.id, n = %d }\n", j-1, j)
			}
			src.WriteString("  }\n")
		}
		src.WriteString("}\n")
		files[fmt.Sprintf("f%d.hcl", i)] = src.String()
	}
	dir := folder(b, files)
	b.ReportAllocs()
	for b.Loop() {
		if set, diags := Load(b.Context(), []string{dir}, Options{Catalog: modules}); len(diags) > 0 || len(set.Flows) != flows {
			b.Fatal(diags)
		}
	}
}

// benchFlow has ten tasks in a row, as most of a flow's tasks are, and some more
// whose inputs are of other kinds.
func benchFlow(b *testing.B) *Flow {
	var src strings.Builder
	src.WriteString("flow \"f\" {\n")
	for i := range 10 {
		fmt.Fprintf(&src, "  task \"t%d\" {\n    plugin = \"./greet.wasm\"\n", i)
		if i > 0 {
			fmt.Fprintf(&src, "    input  = { n = task.t%d.output.n, i = %d }\n", i-1, i)
		}
		src.WriteString("  }\n")
	}
	for _, c := range benchInputs {
		fmt.Fprintf(&src, "  task %q {\n    plugin = \"./greet.wasm\"\n    input  = %s\n  }\n", strings.ReplaceAll(c.name, " ", "_"), c.input)
	}
	src.WriteString("}\n")
	return oneFlow(b, src.String())
}

var benchInputs = []struct{ name, input string }{
	{"output", "task.t0.output"},
	{"payload", "trigger.payload"},
	{"field", "{ n = task.t3.output.n, i = 4 }"},
	{"three fields", "{ total = trigger.payload.total, customer = trigger.payload.customer, run = run.id }"},
	{"output in object", "{ order = trigger.payload, from = task.t0.output }"},
	{"template", "{ text = \"${trigger.payload.customer} owes ${trigger.payload.total}\" }"},
	{"computed", "{ n = task.t3.output.n + 1, all = [for i in trigger.payload.items : i * 2] }"},
}

const (
	benchPayload = `{"total":12000.10,"customer":"c","items":[1,2,3]}`
	benchOutput  = `{"n":12345,"text":"hello, world","ok":true}`
)

func BenchmarkInput(b *testing.B) {
	f := benchFlow(b)
	r := aRun(f, benchPayload, nil)
	t0, t3 := done("t0", benchOutput), done("t3", benchOutput)
	for _, c := range benchInputs {
		b.Run(c.name, func(b *testing.B) {
			t := f.task(b, strings.ReplaceAll(c.name, " ", "_"))
			b.ReportAllocs()
			// Each evaluation has a new scope: a task is the first to use the output of the
			// one before it. BenchmarkScope shows what the scope itself costs.
			for b.Loop() {
				s := f.Scope(r)
				s.Settle(t0)
				s.Settle(t3)
				if _, failure := t.Input(s); failure != nil {
					b.Fatal(failure)
				}
			}
		})
	}
}

// BenchmarkInputAgain is without the scope, whose values have been converted.
func BenchmarkInputAgain(b *testing.B) {
	f := benchFlow(b)
	s := f.Scope(aRun(f, benchPayload, nil))
	s.Settle(done("t0", benchOutput))
	s.Settle(done("t3", benchOutput))
	for _, c := range benchInputs {
		b.Run(c.name, func(b *testing.B) {
			t := f.task(b, strings.ReplaceAll(c.name, " ", "_"))
			b.ReportAllocs()
			for b.Loop() {
				if _, failure := t.Input(s); failure != nil {
					b.Fatal(failure)
				}
			}
		})
	}
}

func BenchmarkScope(b *testing.B) {
	f := benchFlow(b)
	r := aRun(f, benchPayload, nil)
	var ended []*run.TaskRun
	for _, t := range f.Tasks {
		ended = append(ended, done(t.Name, benchOutput))
	}
	b.ReportAllocs()
	for b.Loop() {
		s := f.Scope(r)
		for i, t := range f.Tasks {
			if wanted, _ := t.When(s); !wanted {
				b.Fatal("not wanted")
			}
			s.Settle(ended[i])
		}
		if _, failure := f.Output(s); failure != nil {
			b.Fatal(failure)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	for name, src := range map[string]string{"plain": "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n  }\n}", "params": paramsFlow} {
		b.Run(name, func(b *testing.B) {
			f := oneFlow(b, src)
			r := request("", `{"key":"k","n":1.5}`)
			b.ReportAllocs()
			for b.Loop() {
				if a, err := f.Admit(r); err != nil || !a.Accepted {
					b.Fatal(a, err)
				}
			}
		})
	}
}
