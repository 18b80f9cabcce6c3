package flows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/flows/internal/funcs"
)

// TestFunctions evaluates each expression while loading and in a run: the
// second form takes its data from the payload.
func TestFunctions(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`coalesce(null, { a = 1 }, [2])`:       `{"a":1}`,
		`coalesce()`:                           `null`,
		`coalesce(null, "")`:                   `""`,
		`length("größe")`:                      `5`,
		`length({ a = 1, b = 2 })`:             `2`,
		`length([1, "x", null])`:               `3`,
		`sum([1, 2.5, "3"])`:                   `6.5`,
		`sum([])`:                              `0`,
		`sum([0.1, 0.2])`:                      `0.3`,
		`one([])`:                              `null`,
		`one([{ a = 1 }])`:                     `{"a":1}`,
		`one(toset(["x"]))`:                    `"x"`,
		`index(["a", "b"], "b")`:               `1`,
		`alltrue([true, "true"])`:              `true`,
		`alltrue([true, null])`:                `false`,
		`alltrue([])`:                          `true`,
		`anytrue([false, true])`:               `true`,
		`anytrue([])`:                          `false`,
		`startswith("flowhost", "flow")`:       `true`,
		`endswith("flowhost", "flow")`:         `false`,
		`strcontains("flowhost", "whom")`:      `false`,
		`replace("a.b.c", ".", "/")`:           `"a/b/c"`,
		`replace("a1b22", "/[0-9]+/", "<$0>")`: `"a<1>b<22>"`,
		`timecmp("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00")`:     `0`,
		`timecmp("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")`:          `-1`,
		`urldecode(urlencode("a b&c/ü"))`:                                  `"a b&c/ü"`,
		`nonsensitive(sensitive({ a = 1 }))`:                               `{"a":1}`,
		`sensitive("x")`:                                                   `"x"`,
		`try({}.missing, "fallback")`:                                      `"fallback"`,
		`can(1 + "x")`:                                                     `false`,
		`convert(["1"], list(number))`:                                     `[1]`,
		`jsondecode("{\"n\":12345678901234567890}").n`:                     `12345678901234567890`,
		`yamldecode("a: [1, x]")`:                                          `{"a":[1,"x"]}`,
		`sha256("x")`:                                                      `"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"`,
		`base64decode(base64encode("x"))`:                                  `"x"`,
		`cidrhost("10.0.0.0/8", 5)`:                                        `"10.0.0.5"`,
		`setproduct(["a"], [1, 2])`:                                        `[["a",1],["a",2]]`,
		`formatdate("YYYY-MM-DD", timeadd("2026-01-31T12:00:00Z", "24h"))`: `"2026-02-01"`,
		`merge({ a = 1 }, { b = 2 })`:                                      `{"a":1,"b":2}`,
		`lookup({ a = 1 }, "b", 2)`:                                        `2`,
		`tolist(["b", "a"])`:                                               `["b","a"]`,
		`max(1, 2.5)`:                                                      `2.5`,
		`2 * 3 == 6 && !false`:                                             `true`,
		`[for k, v in { a = 1 } : "${k}${v}" if v > 0]`:                    `["a1"]`,
		`{ for x in ["a", "b"] : x => upper(x) }`:                          `{"a":"A","b":"B"}`,
		`[{ r = 1 }, { r = 2 }][*].r`:                                      `[1,2]`,
	} {
		t.Run(expr, func(t *testing.T) {
			t.Parallel()
			f := oneFlow(t, fmt.Sprintf(`
				flow "a" {
				  task "t" {
				    plugin = "./greet.wasm"
				    input  = %s
				  }
				  task "late" {
				    plugin = "./greet.wasm"
				    input  = [trigger.payload, %s]
				  }
				}`, expr, expr))
			s := f.Scope(aRun(f, "0", nil))
			if got := input(t, f.Tasks[0], s); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := input(t, f.Tasks[1], s); got != "[0,"+want+"]" {
				t.Errorf("in a run: got %s, want %s", got, want)
			}
		})
	}
}

// TestFunctionsOfUnknownValues checks that functions leave expressions alone
// whose values come only with the run.
func TestFunctionsOfUnknownValues(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  task "t" {
		    plugin = "./greet.wasm"
		  }
		  task "u" {
		    plugin = "./greet.wasm"
		    input = [
		      sum(task.t.output.n), one(task.t.output.n), index(task.t.output.n, 7), length(task.t.output.s), alltrue(task.t.output.b),
		      anytrue([true, task.t.output.b[0]]), coalesce(null, task.t.output.s), replace(task.t.output.s, "b", "c"),
		      startswith(task.t.output.s, "a"), timecmp(trigger.time, task.t.output.t), urldecode(task.t.output.s), length(task.t.output),
		      nonsensitive(sensitive(task.t.output.n)), setproduct(task.t.output.n, ["x"]), try(task.t.output.none, "no"), task.t.output.o[*].x,
		    ]
		  }
		}`)
	s := f.Scope(aRun(f, "", nil))
	s.Settle(done("t", `{"n":[7],"s":"ab","b":[false],"t":"2026-03-08T02:31:00Z","o":[{"x":1},{"x":[2]}]}`))
	const want = `[7,7,0,2,false,true,"ab","ac",true,-1,"ab",5,[7],[[7,"x"]],"no",[1,[2]]]`
	if got := input(t, f.task(t, "u"), s); got != want {
		t.Error(got)
	}
}

func TestFunctionsAreNotRandom(t *testing.T) {
	t.Parallel()
	for _, name := range append(keys(funcs.Refused), fileFunctions...) {
		if _, ok := funcs.Table()[name]; ok {
			t.Errorf("%s is there in runs", name)
		}
	}
}

func TestFileFunctionErrors(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"f.hcl": "locals {\n" + strings.Join([]string{
			`a = file("latin1.txt")`, `b = file("large.bin")`, `c = file("folder")`, `d = templatefile("t.tpl", {})`, `e = templatefile("broken.tpl", {})`,
			`f = templatefile("t.tpl", ["x"])`, `g = templatefile("loop.tpl", {})`, `h = fileexists("folder/../../x")`, `i = fileexists("folder/x")`,
		}, "\n") + "\n}\n" + smallFlow("a"),
		"latin1.txt": "\xff", "large.bin": strings.Repeat("x", maxDataFile+1), "folder/x": "", "t.tpl": "${name}", "broken.tpl": "${", "loop.tpl": `${templatefile("loop.tpl", {})}`,
	}
	set, diags := Load(t.Context(), []string{folder(t, files)}, Options{Catalog: modules})
	var want []string
	for line := 2; line <= 9; line++ {
		want = append(want, fmt.Sprintf("f.hcl:%d expression", line))
	}
	if diff := cmp.Diff(want, complaints(diags)); diff != "" {
		t.Error(diff, text(set, diags))
	}
}

// TestTextsTooLarge refuses them before they are made.
func TestTextsTooLarge(t *testing.T) {
	t.Parallel()
	const long = `join("", [for x in range(1000) : "abcdefgh"])`
	for name, expr := range map[string]string{
		"width":      `format("%2000000000s", "a")`,
		"precision":  `format("%.99999999999999999999f", 1)`,
		"list":       `formatlist("%1000000s", range(1000))`,
		"directives": `format(join("", [for x in range(1000) : "%[1]s%[1]s%[1]s%[1]s"]), ` + long + `)`,
		"one in all": `formatlist(join("", [for x in range(100) : "%[2]s"]), range(1000), ` + long + `)`,
		"expression": `replace(` + long + `, "/./", ` + long + `)`,
		"groups":     `replace(` + long + `, "/.*/", join("", [for x in range(1000) : "$0$0$0$0"]))`,
		"brackets":   `yamldecode(join("", [for x in range(1000) : "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]))`,
	} {
		_, diags := loadWithLittle(t, "f.hcl", "locals {\n  a = "+expr+"\n}\n"+smallFlow("f"))
		if len(diags) != 1 || !strings.Contains(diags[0].Detail, "the string ") {
			t.Errorf("%s: %v", name, diags)
		}
	}
	const fits = `[format("%10s|%-5d|%5.1f|%%", "a", 1, 2.5), formatlist("%s-%s", ["a", "b"], "c"), replace("abc", "/(b)/", "$1$1"), length(yamldecode("[[1]]"))]`
	set, diags := loadWithLittle(t, "f.hcl", "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = "+fits+"\n  }\n}\n")
	if got := input(t, onlyFlow(t, set).Tasks[0], onlyFlow(t, set).Scope(aRun(set.Flows[0], "", nil))); len(diags) > 0 || got != `["         a|1    |  2.5|%",["a-c","b-c"],"abbc",1]` {
		t.Error(got, diags)
	}
}
