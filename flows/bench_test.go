package flows

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkLoad100Flows20Tasks(b *testing.B) {
	files := map[string]string{"plugins.hcl": "plugin \"p\" {\n  source = \"./greet.wasm\"\n}\n"}
	for i := range 100 {
		var src strings.Builder
		fmt.Fprintf(&src, "flow \"f%d\" {\n", i)
		for j := range 20 {
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
		if set, diags := Load(b.Context(), []string{dir}, Options{Catalog: modules}); len(diags) > 0 || len(set.Flows) != 100 {
			b.Fatal(diags)
		}
	}
}

func BenchmarkInput(b *testing.B) {
	f := oneFlow(b, `
		flow "f" {
		  task "a" {
		    plugin = "./greet.wasm"
		  }
		  task "b" {
		    plugin = "./greet.wasm"
		    input  = { total = task.a.output.total, customer = task.a.output.customer, run = run.id }
		  }
		  task "c" {
		    plugin = "./greet.wasm"
		    input  = task.a.output
		  }
		}`)
	r := aRun(f, "", nil)
	for _, task := range []string{"b", "c"} {
		b.Run(map[string]string{"b": "three fields", "c": "whole"}[task], func(b *testing.B) {
			t := f.task(b, task)
			b.ReportAllocs()
			for b.Loop() {
				s := f.Scope(r)
				s.Settle(done("a", `{"total":12000.10,"customer":"c","items":[1,2,3]}`))
				if _, failure := t.Input(s); failure != nil {
					b.Fatal(failure)
				}
			}
		})
	}
}
