package flows

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

var loadBytes = flag.Int("load.bytes", 150_000, "how large the files are that take longest to load")

// repeatedTo repeats a pattern, with a number in place of #, up to a size.
func repeatedTo(size int, pattern string) string {
	var out strings.Builder
	for i := 0; out.Len() < size; i++ {
		out.WriteString(strings.ReplaceAll(pattern, "#", fmt.Sprint(i)))
	}
	return out.String()
}

// loadBombs are the files of a size that took longest to load for what they say.
var loadBombs = map[string]func(size int) string{
	"lines": func(n int) string { return inputOf("<<E\n" + strings.Repeat("x\n", n/2) + "E\n") },
	"indented lines": func(n int) string {
		return inputOf("<<-E\n" + strings.Repeat("    x\n", n/6) + "    E\n")
	},
	"lines around values": func(n int) string { return inputOf("<<E\n" + strings.Repeat("${1}\n", n/5) + "E\n") },
	"lines before texts": func(n int) string {
		return inputOf("<<E\n" + strings.Repeat("x\n", n/4) + strings.Repeat(`${""}`, n/10) + "\nE\n")
	},
	"lines of YAML": func(n int) string {
		return "locals {\n  a = yamldecode(<<E\n" + strings.Repeat("- []\n", n/5) + "E\n  )\n}\n" + smallFlow("f")
	},
	"dollars":         func(n int) string { return inputOf(`"` + strings.Repeat("a$", n/2) + `a"`) },
	"numbers":         func(n int) string { return inputOf(`"` + strings.Repeat("${1}", n/4) + `"`) },
	"numbers as keys": func(n int) string { return inputOf("{" + repeatedTo(n, "#=1,") + "}") },
	"optional attributes": func(n int) string {
		return repeatedTo(n, "variable \"v#\" {\n  type = "+strings.Repeat("object({a=optional(", 240)+"string"+strings.Repeat(",{})})", 240)+"\n}\n") + smallFlow("f")
	},
	"types to convert to": func(n int) string {
		return "locals {\n  a = [for x in range(1000) : [for y in range(1000) : convert(1, object({" + repeatedTo(n, "a#=any,") + "}))]]\n}\n" + smallFlow("f")
	},
	"days that never come": func(n int) string {
		return "flow \"f\" {\n" + repeatedTo(n, "  trigger \"schedule\" \"s#\" {\n    cron = \"0 0 1-7 2 mon!5\"\n    day_match = \"and\"\n  }\n") + "}\n"
	},
	"deep lists": func(n int) string {
		return "locals {\n" + repeatedTo(n, "  a# = "+strings.Repeat("[", 490)+strings.Repeat("]", 490)+"\n") + "}\n" + smallFlow("f")
	},
	"cycle of locals": func(n int) string {
		return "locals {\n" + repeatedTo(n, "  a# = [local.z, local.a0]\n") + "  z = local.a1\n}\n" + smallFlow("f")
	},
}

func inputOf(expr string) string {
	return "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input = " + expr + "\n  }\n}\n"
}

// loadUnits is how many units of work a file of 1 MB may take. What grows with the
// square of the size takes ten times as many.
const loadUnits = 1_000

// TestLoadBombs loads large files. The bound is a multiple of what this machine takes
// for other work at the moment; what seems to be beyond it is measured again.
func TestLoadBombs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, name := range keys(loadBombs) {
		src := strings.ReplaceAll(loadBombs[name](*loadBytes), "!", "#")
		dir := folder(t, map[string]string{"f.hcl": src})
		for try := 1; ; try++ {
			unit := unitOfWork()
			first := ""
			spent := costOf(func() {
				if _, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules}); len(diags) > 0 {
					first = diags[0].Summary
				}
			})
			t.Logf("%v (%.0f units), %d MB: %s: %s", spent.cpu, float64(spent.cpu)/float64(unit), spent.bytes>>20, name, first)
			if spent.cpu <= loadUnits*unit*time.Duration(len(src))/1_000_000 {
				break
			}
			if try == 3 {
				t.Errorf("%s: %v of CPU for %d bytes, and a unit of work is %v", name, spent.cpu, len(src), unit)
				break
			}
		}
	}
}

// TestLongTextsLoad reads texts that are long, but no bomb.
func TestLongTextsLoad(t *testing.T) {
	t.Parallel()
	for name, expr := range map[string]string{
		"lines":      "<<E\n" + strings.Repeat("some words of a long text\n", 10_000) + "E\n",
		"many texts": "[\n" + strings.Repeat("<<E\na\nb\nc\nE\n,\n", 10_000) + "]",
	} {
		if _, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": inputOf(expr)})}, Options{Catalog: modules}); diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
