package flows

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// This file gives flows what made one message stop all others: values from outside
// that take long to read, or that the functions took long with.

// within fails a test whose f takes more than a quarter of a second of an idle
// machine's CPU, each time it is tried: a busy machine only adds.
func within(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for try := 1; ; try++ {
		unit := unitOfWork()
		spent := costOf(f)
		if spent.cpu <= maxWork*unit && spent.bytes <= maxAllocated {
			return
		}
		if try == 4 {
			t.Errorf("%v of CPU (%.1f units of %v), %d MB", spent.cpu, float64(spent.cpu)/float64(unit), unit, spent.bytes>>20)
			return
		}
	}
}

func listenFlow(t *testing.T, task string) *Flow {
	t.Helper()
	return oneFlow(t, `flow "f" {
  trigger "message" "m" {
    subject = "orders"
    filter  = trigger.payload.name != ""
  }
  task "t" {
    plugin = "./greet.wasm"
`+task+`
  }
}
`)
}

func TestOneNumberOfThreeMillionDigits(t *testing.T) {
	f := listenFlow(t, "    input = trigger.payload.name")
	within(t, func() {
		_, err := f.Admit(request("m", `{"n":`+strings.Repeat("7", 3_000_000)+`,"name":"x"}`))
		if err == nil || !strings.Contains(err.Error(), "a number is longer") {
			t.Errorf("%.200v", err)
		}
	})
	within(t, func() { // in a value that is not even looked at
		_, err := f.Admit(request("m", `{"name":"x","n":1e600000000}`))
		if err == nil || !strings.Contains(err.Error(), "the exponent") {
			t.Errorf("%.200v", err)
		}
	})
}

func TestAMillionItemsAreRefused(t *testing.T) {
	f := listenFlow(t, "    input = { text = jsonencode(trigger.payload), name = trigger.payload.name }")
	payload := `{"name":"x","items":[` + strings.Repeat("1,", 999_999) + "1]}"
	within(t, func() {
		if a, err := f.Admit(request("m", payload)); err != nil || !a.Accepted {
			t.Errorf("%+v, %v: the filter looks at a part of it only", a, err)
		}
	})
	within(t, func() {
		_, failure := f.Tasks[0].Input(f.Scope(aRun(f, payload, nil)))
		if failure == nil || failure.Outcome != run.OutcomeRejected || failure.Retryable || !strings.Contains(failure.Message, "too large for an expression: it has 2000022 bytes of JSON, and expressions open 262144 at most") {
			t.Errorf("%+v", failure)
		}
	})
}

func TestManyFloats(t *testing.T) {
	var floats strings.Builder
	for i := range 150_000 {
		fmt.Fprintf(&floats, "0.%d1234567890123,", i)
	}
	payload := `{"name":"x","floats":[` + floats.String() + `1]}`
	for _, size := range []int{100_000, len(payload)} {
		cut := payload
		if size < len(payload) {
			cut = payload[:strings.LastIndexByte(payload[:size], ',')] + "]}"
		}
		f := listenFlow(t, "    input = { a = trigger.payload.floats, b = [trigger.payload.name] }")
		within(t, func() {
			if got, failure := f.Tasks[0].Input(f.Scope(aRun(f, cut, nil))); failure != nil || len(got) < size/2 {
				t.Errorf("%+v", failure)
			}
		})
		f = listenFlow(t, "    input = { a = jsonencode(trigger.payload.floats) }")
		within(t, func() { f.Tasks[0].Input(f.Scope(aRun(f, cut, nil))) })
	}
}

func TestDistinctOfManyObjects(t *testing.T) {
	var objects []string
	for i := range 2000 {
		objects = append(objects, fmt.Sprintf(`{"id":%d,"n":"x%d"}`, i, i%7))
	}
	f := listenFlow(t, "    input = length(distinct(trigger.payload.items))")
	within(t, func() {
		if got := input(t, f.Tasks[0], f.Scope(aRun(f, `{"items":[`+strings.Join(objects, ",")+`]}`, nil))); got != "2000" {
			t.Error(got)
		}
	})
}

func TestAnOutputOfDigits(t *testing.T) {
	f := oneFlow(t, "flow \"f\" {\n  task \"a\" {\n    plugin = \"./greet.wasm\"\n  }\n  task \"b\" {\n    plugin = \"./greet.wasm\"\n    input  = { n = task.a.output.n + 1 }\n  }\n  task \"c\" {\n    plugin = \"./greet.wasm\"\n    input  = { n = task.a.output.n }\n  }\n}\n")
	s := f.Scope(aRun(f, "", nil))
	s.Settle(done("a", `{"n":`+strings.Repeat("7", 1_000_000)+"}"))
	for _, task := range f.Tasks[1:] {
		within(t, func() {
			if _, failure := task.Input(s); failure == nil || !strings.Contains(failure.Message, "digits") {
				t.Errorf("%.200v", failure)
			}
		})
	}
}

// TestParamsOfWideTypes converts what a request gives to types that cost cty the
// square of its size.
func TestParamsOfWideTypes(t *testing.T) {
	for typ, value := range map[string]string{
		"list(string)":      worstValues["integers"](200_000),
		"set(string)":       worstValues["collisions"](200_000),
		"set(any)":          worstValues["floats"](200_000),
		"map(string)":       worstValues["wide mixed"](200_000),
		"list(any)":         worstValues["halves"](200_000),
		"list(map(string))": worstValues["shapes"](200_000),
		"number":            `"` + strings.Repeat("7", 200_000) + `"`,
		"list(number)":      `["` + strings.Repeat("7", 200_000) + `"]`,
	} {
		f := oneFlow(t, "flow \"f\" {\n  param \"p\" {\n    type = "+typ+"\n  }\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = param.p\n  }\n}\n")
		within(t, func() {
			r := request("", "")
			r.Params = map[string]json.RawMessage{"p": json.RawMessage(value)}
			_, err := f.Admit(r)
			t.Logf("%s: %.100v", typ, err)
		})
	}
}

// TestPartsOfALargeValue finds what is named in a value that is not opened.
func TestPartsOfALargeValue(t *testing.T) {
	payload := `{"name":"x","items":[` + strings.Repeat(`{"n":"abc","m":1},`, 60_000) + `{"n":"end"}]}`
	for expr, want := range map[string]string{
		`upper(trigger.payload.name)`:                             `"X"`,
		`"${trigger.payload.items[3].n}!"`:                        `"abc!"`,
		`trigger.payload.items[2].m + trigger.payload.items[9].m`: `2`,
		`try(trigger.payload.nothing.x, "none")`:                  `"none"`,
		`try(trigger.payload.name.x, "none")`:                     `"none"`,
		`trigger.payload.items[60000].n`:                          `"end"`,
		`jsonencode(trigger.payload.items)`:                       `too large for an expression`,
		`length(trigger.payload)`:                                 `too large for an expression`,
		`[for i in trigger.payload.items : i.n]`:                  `too large for an expression`,
		`trigger.payload.items[0].nothing + 1`:                    `does not have an attribute`,
	} {
		f := oneFlow(t, "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = "+expr+"\n  }\n}\n")
		got, failure := f.Tasks[0].Input(f.Scope(aRun(f, payload, nil)))
		if failure != nil {
			got = json.RawMessage(failure.Message)
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: %s", expr, got)
		}
	}
	f := oneFlow(t, "flow \"f\" {\n  param \"name\" {\n    type = string\n  }\n  task \"t\" {\n    plugin   = \"./greet.wasm\"\n    for_each = trigger.payload.items\n    input    = each.value.n\n  }\n}\n")
	a, err := f.Admit(request("", payload))
	if err != nil || string(a.Params["name"]) != `"x"` {
		t.Errorf("%s, %v", a.Params, err)
	}
	items, failure := f.Tasks[0].Items(f.Scope(aRun(f, payload, nil)))
	if failure != nil || len(items) < 1_000_000 {
		t.Errorf("%d bytes, %+v", len(items), failure)
	}
}

// TestOpenedIsSettable holds a host to its own bound.
func TestOpenedIsSettable(t *testing.T) {
	set := load(t, map[string]string{"f.hcl": "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = length(trigger.payload)\n  }\n}\n"}, Options{Opened: 10})
	f := set.Flows[0]
	if got := input(t, f.Tasks[0], f.Scope(aRun(f, "[1,2,3,4]", nil))); got != "4" {
		t.Error(got)
	}
	if _, failure := f.Tasks[0].Input(f.Scope(aRun(f, "[1,2,3,4,5]", nil))); failure == nil || !strings.Contains(failure.Message, "open 10 at most") {
		t.Errorf("%+v", failure)
	}
}

// TestSetsOfStrings makes sets in which cty sorts the elements again and again.
func TestSetsOfStrings(t *testing.T) {
	for _, expr := range []string{"toset(A)", "toset([toset(A)])", "[for i in C : [for j in C : 0 if !can(toset([toset(A)])) && false]]"} {
		for _, size := range []int{2_000, 20_000, 125_000} {
			within(t, func() { _, _ = attempt(t, expr, worstValues["strings"](size), "1") })
		}
	}
}
