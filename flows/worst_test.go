package flows

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/run"
)

// This file looks for expressions that cost more than they are charged for: every
// function and operator with the worst arguments that JSON can hold, alone, in loops
// that use up what an evaluation may cost, and in each other.

var (
	worst     = flag.Int("worst.share", 400, "measure one of this many worst expressions; 1 measures all")
	worstSeed = flag.Uint64("worst.seed", 14, "which of them")
)

// worstValues are JSON values of about a size, each bad for some functions.
var worstValues = map[string]func(size int) string{
	"text":      func(n int) string { return jsonText(strings.Repeat("a", n)) },
	"digits":    func(n int) string { return jsonText(strings.Repeat("7", n)) },
	"marks":     func(n int) string { return jsonText(strings.Repeat("e\u0301\u0327", n/5)) },
	"onlymarks": func(n int) string { return jsonText(strings.Repeat("\u0301\u0327", n/4)) },
	"jamo":      func(n int) string { return jsonText(strings.Repeat("\u1112\u1161\u11ab", n/9)) },
	"family":    func(n int) string { return jsonText(strings.Repeat("👩‍👩‍👧", n/18)) },
	"newlines":  func(n int) string { return jsonText(strings.Repeat(`\n`, n/2)) },
	"commas":    func(n int) string { return jsonText(strings.Repeat(",", n/2-2) + `\n` + strings.Repeat(",", n/2)) },
	"yaml":      func(n int) string { return jsonText(strings.Repeat("[],", n/3)) },
	"yamllist":  func(n int) string { return jsonText("[" + strings.Repeat("a,", n/2) + "a]") },
	"yamldeep":  func(n int) string { return jsonText(strings.Repeat("- ", n/2)) },
	"jsontext":  func(n int) string { return jsonText("[" + strings.Repeat("[],", n/3) + "[]]") },
	"csv":       func(n int) string { return jsonText(`a,b,c\n` + strings.Repeat(`,,\n`, n/4)) },
	"percent":   func(n int) string { return jsonText(strings.Repeat("%v", n/2)) },
	"pattern":   func(n int) string { return jsonText(strings.Repeat("(a|b)?", min(n, 900)/6) + "{900}") },

	"empties":  func(n int) string { return repeated(n, func(int) string { return "[]" }) },
	"objects":  func(n int) string { return repeated(n, func(int) string { return "{}" }) },
	"nulls":    func(n int) string { return repeated(n, func(int) string { return "null" }) },
	"bools":    func(n int) string { return repeated(n, func(int) string { return "true" }) },
	"ones":     func(n int) string { return repeated(n, func(int) string { return "1" }) },
	"integers": func(n int) string { return repeated(n, func(i int) string { return fmt.Sprint(i) }) },
	"floats":   func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf("%d.1", i) }) },
	"long floats": func(n int) string {
		return repeated(n, func(i int) string { return fmt.Sprintf("0.12345678901234567%d", i) })
	},
	"tiny": func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf("%de-600", i) }) },
	"huge": func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf("%de600", i) }) },
	"long": func(n int) string {
		return repeated(n, func(i int) string { return "0." + strings.Repeat("7", 900) + fmt.Sprint(i) })
	},
	"strings": func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) },
	"same":    func(n int) string { return repeated(n, func(int) string { return `"x"` }) },
	"prefixes": func(n int) string {
		return repeated(n, func(i int) string { return jsonText(strings.Repeat("p", 500) + fmt.Sprint(i)) })
	},
	"collisions": func(n int) string { return repeated(n, func(i int) string { return jsonText(collision(i)) }) },
	"records": func(n int) string {
		return repeated(n, func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"n%[1]d","on":true}`, i) })
	},
	"shapes": func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf(`{"k%d":%[1]d}`, i) }) },
	"maybe": func(n int) string {
		return repeated(n, func(i int) string { return `{"a":` + []string{"null", `"x"`, "1", "[]", "{}"}[i%5] + "}" })
	},
	"mixed": func(n int) string {
		return repeated(n, func(i int) string { return []string{"1", `"x"`, "[]", "{}", "null", "true"}[i%6] })
	},
	"halves": func(n int) string {
		i := 0
		return repeated(n, func(int) string { i++; return map[bool]string{true: "1", false: "{}"}[i < n/4] })
	},
	"lengths": func(n int) string {
		return repeated(n, func(i int) string { return "[" + strings.Repeat("1,", i%40) + "1]" })
	},
	"pairs": func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf(`["%d",%[1]d]`, i) }) },
	"deep": func(n int) string {
		return repeated(n, func(int) string { return strings.Repeat("[", 900) + strings.Repeat("]", 900) })
	},
	"deep objects": func(n int) string {
		return repeated(n, func(int) string { return strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400) })
	},
	"tower": func(n int) string {
		return strings.Repeat("[1,", min(n, 2600)/4) + "1" + strings.Repeat("]", min(n, 2600)/4)
	},
	"tree": func(n int) string {
		s := "[]"
		for len(s) < n/2 {
			s = "[" + s + "," + s + "]"
		}
		return s
	},
	"wide": func(n int) string {
		return "{" + strings.TrimSuffix(repeatedRaw(n, func(i int) string { return fmt.Sprintf(`"k%d":%[1]d`, i) }), ",") + "}"
	},
	"wide texts": func(n int) string {
		return "{" + strings.TrimSuffix(repeatedRaw(n, func(i int) string { return fmt.Sprintf(`"k%d":"%[1]d"`, i) }), ",") + "}"
	},
	"wide mixed": func(n int) string {
		return "{" + strings.TrimSuffix(repeatedRaw(n, func(i int) string { return fmt.Sprintf(`"k%d":%s`, i, []string{"1", "{}", "[]", "null"}[i%4]) }), ",") + "}"
	},
	"number": func(int) string { return "1.1e-600" },
	"small":  func(int) string { return "3" },
	"yes":    func(int) string { return "true" },
}

func jsonText(s string) string { return `"` + s + `"` }

func repeatedRaw(size int, item func(int) string) string {
	var out strings.Builder
	for i := 0; out.Len() < size-8 || i == 0; i++ {
		out.WriteString(item(i) + ",")
	}
	return out.String()
}

func repeated(size int, item func(int) string) string {
	return "[" + strings.TrimSuffix(repeatedRaw(size, item), ",") + "]"
}

// collision is one of many texts whose quoted forms have one CRC-32.
func collision(i int) string {
	// The checksum is linear: two blocks that cancel each other out may be put in or
	// left out at any of 16 places.
	var out strings.Builder
	for bit := range 16 {
		out.WriteString([]string{"uejgtcuo", "iiwucoup"}[i>>bit&1])
	}
	return out.String()
}

// worstCalls are uses of each function, of A and B, which are two bad values.
var worstCalls = map[string][]string{
	"abs": {"abs(A)"}, "ceil": {"ceil(A)"}, "floor": {"floor(A)"}, "log": {"log(A, 2)"}, "max": {"max(A...)", "max(A, B)"}, "min": {"min(A...)"},
	"parseint": {"parseint(A, 10)"}, "pow": {"pow(A, 3)", "pow(9, A)"}, "signum": {"signum(A)"}, "sum": {"sum(A)"},
	"chomp": {"chomp(A)"}, "format": {`format("%v %s", A, B)`, "format(A, B, 1)", `format("%500d", 1)`, `format("%#v %q", A, B)`}, "formatlist": {`formatlist("%v", A)`, `formatlist("%s%s", A, B)`, "formatlist(A, B)"},
	"indent": {"indent(50, A)"}, "join": {`join(",", A)`, "join(A, B)"}, "lower": {"lower(A)"},
	"regex": {`regex("(a|b|7)+$", A)`, `regex(A, B)`, `regex("((a{30}){30})$", A)`, `regex("(?:(?:a?){100})*z", A)`}, "regexall": {`regexall("a", A)`, `regexall("(a[^y]*y)|a", A)`, `regexall("(?:a.*z)?a", A)`, `regexall("", A)`, `regexall(A, B)`, `regexall("[a-z0-9]{1,1000}", A)`},
	"replace": {`replace(A, "a", "bb")`, `replace(A, "/a/", "bb")`, `replace(A, "/a(.*z)?/", "$1")`, `replace(A, "", "x")`, `replace(A, B, "")`}, "split": {`split("", A)`, `split(",", A)`, "split(A, B)"},
	"strrev": {"strrev(A)"}, "substr": {"substr(A, 0, 1)", "substr(A, 1000, 100000)", "substr(A, -1, 1)", "substr(A, 0, -1)"}, "title": {"title(A)"},
	"trim": {"trim(A, B)", `trim(A, "bcdefgh7")`}, "trimprefix": {"trimprefix(A, B)"}, "trimspace": {"trimspace(A)"}, "trimsuffix": {"trimsuffix(A, B)"}, "upper": {"upper(A)"},
	"formatdate": {`formatdate(A, "2026-01-01T00:00:00Z")`}, "timeadd": {`timeadd("2026-01-01T00:00:00Z", A)`}, "timecmp": {"timecmp(A, B)"},
	"startswith": {"startswith(A, B)"}, "endswith": {"endswith(A, B)"}, "strcontains": {"strcontains(A, B)"},

	"alltrue": {"alltrue(A)"}, "anytrue": {"anytrue(A)"}, "chunklist": {"chunklist(A, 1)", "chunklist(A, 100)"}, "coalesce": {"coalesce(A, B)", "coalesce(A...)"}, "coalescelist": {"coalescelist(A, B)", "coalescelist(A...)"},
	"compact": {"compact(A)"}, "concat": {"concat(A, B)", "concat(A...)", "concat(tolist(A), tolist(B))"}, "contains": {"contains(A, B)", "contains(A, A[0])", "contains([A, A, A, A], B)", "contains(range(1000), A)"},
	"distinct": {"distinct(A)", "distinct(tolist(A))"}, "element": {"element(A, 5)"}, "flatten": {"flatten(A)", "flatten([A, [A]])"}, "index": {"index(A, B)", "index([1, 2, A], A)"}, "keys": {"keys(A)"},
	"length": {"length(A)"}, "lookup": {`lookup(A, "x", B)`, `lookup(tomap(A), "x", B)`}, "merge": {"merge(A, B)", "merge(A...)", "merge(tomap(A), tomap(B))"}, "one": {"one(A)", "one([A])"}, "range": {"range(1000)", "range(0, A)"},
	"reverse": {"reverse(A)", "reverse(tolist(A))"}, "setintersection": {"setintersection(A, B)", "setintersection(A...)"}, "setproduct": {"setproduct(A, [1])", "setproduct(A, B)"}, "setsubtract": {"setsubtract(A, B)"}, "setunion": {"setunion(A, B)", "setunion(A...)"},
	"slice": {"slice(A, 0, 1)"}, "sort": {"sort(A)"}, "values": {"values(A)"}, "zipmap": {"zipmap(A, B)", "zipmap(A, A)"},

	"base64decode": {"base64decode(A)"}, "base64encode": {"base64encode(A)"}, "csvdecode": {"csvdecode(A)"}, "jsondecode": {"jsondecode(A)"}, "jsonencode": {"jsonencode(A)"}, "urlencode": {"urlencode(A)"}, "urldecode": {"urldecode(A)"},
	"yamldecode": {"yamldecode(A)"}, "yamlencode": {"yamlencode(A)"}, "md5": {"md5(A)"}, "sha1": {"sha1(A)"}, "sha256": {"sha256(A)"}, "sha512": {"sha512(A)"},
	"cidrhost": {`cidrhost("10.0.0.0/8", A)`, "cidrhost(A, 1)"}, "cidrnetmask": {"cidrnetmask(A)"}, "cidrsubnet": {`cidrsubnet("10.0.0.0/8", 8, A)`}, "cidrsubnets": {`cidrsubnets("fc00::/7", A...)`, `cidrsubnets("10.0.0.0/8", [for x in range(500) : 10]...)`},

	"can": {"can(A.b)", "can(upper(A))"}, "try": {"try(A.b, sort(A), tolist(A), B)"}, "convert": {"convert(A, set(string))", "convert(A, map(any))", "convert(A, list(any))", "convert(A, list(number))", "convert(A, object({ a = optional(string, \"x\") }))", "convert(A, list(object({ a = optional(any), id = optional(number) })))", "convert(A, set(any))"},
	"nonsensitive": {"nonsensitive(A)", "sort(nonsensitive(sensitive(A)))"}, "sensitive": {"sort(sensitive(A))", "tolist([for x in A : sensitive(x)])", "sensitive(A) == B"},
	"tobool": {"tobool(A)"}, "tolist": {"tolist(A)", "tolist(values(A))"}, "tomap": {"tomap(A)"}, "tonumber": {"tonumber(A)"}, "toset": {"toset(A)", "[for x in toset(A) : x]", "toset([toset(A)])"}, "tostring": {"tostring(A)"},

	"": {
		"A == B", "A != A", "A + B", "A * A", "A % B", "A % 7", "-A", "A / 3", "A < B", "A && B", "!A", "A ? A : B", "true ? A : B", "false ? A : [A, 1]", "true ? A : null", "true ? A : []", "true ? A : {}",
		"A[0]", "A[B]", "A[*].id", "A.*.id", "[for x in A : x]", "[for k, v in A : \"${k}\"]", "{ for x in A : x => x... }", "{ for k, v in A : k => v }", "{ for x in A : jsonencode(x) => x... }", "[for x in A : x if x != B]",
		"\"${A}\"", "\"${A}${B}${A}\"", "\"%{for x in A}${x}%{endfor}\"", "\"%{if A == B}${A}%{else}${B}%{endif}\"", "{ (A) = 1 }", "[A, B, [A, B]]", "{ a = A, b = { c = A } }", "A.id", "A[1].a", "[[A], A][1]",
	},
}

var places = strings.NewReplacer("A", "trigger.payload.a", "B", "trigger.payload.b", "C", "trigger.payload.c")

// cost is what something took.
type cost struct {
	cpu   time.Duration
	bytes uint64
}

var allocated = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}

// costOf measures the CPU time of this thread, to which the test is locked.
func costOf(f func()) cost {
	metrics.Read(allocated)
	bytes := allocated[0].Value.Uint64()
	before := cpuTime()
	f()
	spent := cpuTime() - before
	metrics.Read(allocated)
	return cost{spent, allocated[0].Value.Uint64() - bytes}
}

// unitOfWork is how long this machine takes at the moment for what takes 10 ms on an
// idle one: the bounds of the tests are multiples of it.
func unitOfWork() time.Duration {
	best := time.Hour
	src := []byte(worstValues["records"](50_000))
	for range 5 {
		best = min(best, costOf(func() {
			v, err := decodeJSON(src)
			if err == nil {
				_, err = encodeJSON(v)
			}
			if err != nil {
				panic(err)
			}
		}).cpu)
	}
	return best
}

// attempt evaluates an expression over two values as the input of a task.
func attempt(t *testing.T, expr string, a, b string) (cost, *run.Failure) {
	t.Helper()
	src := "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input = " + places.Replace(expr) + "\n  }\n}\n"
	var set *Set
	var diags hcl.Diagnostics
	load := costOf(func() {
		set, diags = Restore(t.Context(), &run.Definition{Files: map[string][]byte{"f.hcl": []byte(src)}}, Options{})
	})
	if diags.HasErrors() {
		return load, &run.Failure{Message: "load: " + text(set, diags)}
	}
	f := set.Flows[0]
	s := f.Scope(aRun(f, `{"a":`+a+`,"b":`+b+`,"c":[`+strings.Repeat("0,", 999)+`0]}`, nil))
	var failure *run.Failure
	spent := costOf(func() { _, failure = f.Tasks[0].Input(s) })
	return cost{spent.cpu + load.cpu, spent.bytes + load.bytes}, failure
}

// worstLoops use an expression until nothing is left of what may be computed.
var worstLoops = []string{
	"[for i in C : [for j in C : 0 if length([IT]) > 1]]",
	"[for i in C : [for j in C : 0 if !can(IT) && false]]",
}

// TestWorstExpressions finds none that takes longer or more memory than it should,
// nor one that is cheap for what it takes, over and over in a loop.
func TestWorstExpressions(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unit := unitOfWork()
	t.Logf("a unit of work is %v", unit)
	names := keys(worstValues)
	r := rand.New(rand.NewPCG(*worstSeed, 15))
	done, failed, machine := 0, 0, time.Duration(0)
	type found struct {
		what string
		cost cost
	}
	var top []found
	tooMuch := func(c cost) bool { return c.cpu > maxWork*unit || c.bytes > maxAllocated }
	try := func(expr, a, b string, size int) {
		spent, failure := attempt(t, expr, worstValues[a](size), worstValues[b](size))
		for again := 0; again < 3 && tooMuch(spent); again++ { // a busy machine only adds
			unit = unitOfWork()
			spent, failure = attempt(t, expr, worstValues[a](size), worstValues[b](size))
		}
		done++
		machine += spent.cpu
		if failure != nil {
			failed++
		}
		what := fmt.Sprintf("%s with %s, %s of %d bytes", expr, a, b, size)
		if failure != nil {
			what += ": " + strings.ReplaceAll(failure.Message[:min(len(failure.Message), 60)], "\n", " ")
		}
		top = append(top, found{what, spent})
		if tooMuch(spent) {
			t.Errorf("%s: %v of CPU (%.1f units), %d MB", what, spent.cpu, float64(spent.cpu)/float64(unit), spent.bytes>>20)
		}
	}
	for _, name := range keys(worstCalls) {
		for _, expr := range worstCalls[name] {
			for _, a := range names {
				b := names[r.IntN(len(names))]
				if r.IntN(*worst) == 0 {
					try(expr, a, b, 125_000)
				}
				if r.IntN(*worst) == 0 {
					try(expr, a, a, 125_000)
				}
				for _, loop := range worstLoops {
					if r.IntN(*worst*3) == 0 {
						try(strings.ReplaceAll(loop, "IT", expr), a, b, []int{20, 500, 20_000}[r.IntN(3)])
					}
				}
			}
		}
	}
	slices.SortFunc(top, func(x, y found) int { return int(y.cost.cpu - x.cost.cpu) })
	for _, f := range top[:min(len(top), 25)] {
		t.Logf("%v, %d MB: %s", f.cost.cpu, f.cost.bytes>>20, f.what)
	}
	t.Logf("%d evaluations, %d of them refused, %v of machine time", done, failed, machine)
}

const (
	maxWork      = 45
	maxAllocated = 256 << 20
)

func TestWorstValuesAreJSON(t *testing.T) {
	for name, of := range worstValues {
		for _, size := range []int{20, 1000, 125_000} {
			if v := of(size); !json.Valid([]byte(v)) || len(v) > size*2+3000 {
				t.Errorf("%s: %d bytes, %.100s", name, len(v), v)
			}
		}
	}
}

// TestEveryFunctionIsWeighed keeps functions from being added without a weight, or
// without a call that is measured.
func TestEveryFunctionIsWeighed(t *testing.T) {
	all := funcs.Table()
	for name := range all {
		if _, ok := budget.Weights[name]; !ok {
			t.Errorf("%s has no weight", name)
		}
		if len(worstCalls[name]) == 0 {
			t.Errorf("%s is not measured", name)
		}
	}
}
