package hostile

import (
	"fmt"
	"slices"
	"strings"
)

// expression is one function of the language with arguments that are more work than
// they look.
type expression struct {
	name string
	text string
}

// arguments are what the expressions work on: locals made of TEXT and of LIST, a
// thousand numbers.
var arguments = []struct{ name, text string }{
	{"text", "TEXT"},
	{"numbers", "flatten([for i in range(10) : LIST])"},
	{"texts", `flatten([for i in range(10) : [for n in LIST : "k${n}-${i}"]])`},
	{"objects", `[for i in LIST : { id = "k${i}", n = i, deep = { list = [i, i + 1] } }]`},
	{"map", `{ for n in LIST : "k${n}" => "v${n}" }`},
	{"json", "jsonencode(local.numbers)"},
	{"yaml", `join("\n", [for t in local.texts : "- ${t}"])`},
	{"csv", `join("\n", concat(["a,b"], [for t in local.texts : "${t},1"]))`},
}

// argumentsOf are locals with those arguments that an expression needs: what the
// arguments cost is not to hide what the expression does.
func argumentsOf(expression, text, list string) string {
	var b strings.Builder
	b.WriteString("locals {\n")
	for _, a := range slices.Backward(arguments) {
		if strings.Contains(expression+b.String(), "local."+a.name) {
			fmt.Fprintf(&b, "  %s = %s\n", a.name, strings.NewReplacer("TEXT", text, "LIST", list).Replace(a.text))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// expressions is every function that takes more than a few bytes, with the worst
// that its arguments allow.
func expressions() []expression {
	var all []expression
	for name, text := range map[string]string{
		"abs": "abs(-1e600000)", "ceil": "ceil(1e600000)", "floor": "floor(-1e-600000)", "log": "log(1e60000, 2)",
		"max": "max($.numbers...)", "min": "min($.numbers...)", "parseint": `parseint($.text, 36)`, "parseint of digits": `parseint(replace($.text, "/[^1]/", "7"), 10)`,
		"pow": "pow(1e300, 1e300)", "pow of digits": "pow(7, 1000000)", "sum": "sum($.numbers)", "modulo": "1e600000000 % 7", "modulo small": "7 % 1e-600000000",
		"division": "1 / 3e-600000000", "comparison": "1e600000000 < 1e600000001", "index by exponent": "[1, 2, 3][1e600000000]", "number as text": `"${1e6000000}"`,
		"chomp": "chomp($.text)", "endswith": "endswith($.text, $.text)", "format": `format("%1000000s%1000000s", "a", $.text)`, "format precision": `format("%.1000000f", 1.5)`,
		"formatlist": `formatlist("%s-%s", $.texts, $.texts)`, "indent": "indent(100000, $.text)", "join": "join($.text, $.texts)", "lower": "lower($.text)",
		"regex": `regex("(((a{1,30}){1,30}){1,1000})*b", $.text)`, "regexall": `regexall("(.{0,1000}){1000}", $.text)`, "regexall of letters": `regexall("(a|é|1)?", $.text)`,
		"replace": `replace($.text, "a", $.text)`, "replace by pattern": `replace($.text, "/(.)/", "$1$1$1$1$1$1$1$1")`, "split": `split("", $.text)`, "split by letter": `split("a", $.text)`,
		"startswith": "startswith($.text, $.text)", "strcontains": "strcontains($.text, \"${$.text}b\")", "strrev": "strrev($.text)", "substr": "[for i in range(1000) : substr($.text, i, 1)]",
		"substr from the end": "[for i in range(1000) : substr($.text, -i - 1, 1)]", "title": "title($.text)", "trim": `trim($.text, $.text)`, "trimspace": "trimspace($.text)", "upper": "upper($.text)",
		"length of text": "[for i in range(1000) : length($.text)]", "text equals": "[for i in range(1000) : $.text == \"${$.text}b\"]",
		"formatdate":  `formatdate($.text, "2026-01-01T00:00:00Z")`,
		"chunklist":   "chunklist($.numbers, 1)",
		"coalesce":    "coalesce($.texts...)",
		"compact":     "compact($.texts)",
		"concat":      "concat([for i in range(1000) : $.numbers]...)",
		"contains":    "[for o in $.objects : contains($.objects, o)]",
		"distinct":    "distinct($.objects)",
		"distinct in": "distinct(concat($.objects, [for o in $.objects : merge(o, { more = 1 })]))",
		"element":     "[for n in $.numbers : element($.numbers, n * 1000000)]",
		"flatten":     "flatten([for i in range(1000) : [[[[[$.numbers]]]]]])",
		"index":       "[for o in $.objects : index($.objects, o)]",
		"keys":        "[for i in range(1000) : keys($.map)]",
		"lookup":      `[for n in $.numbers : lookup($.map, "k${n}", "none")]`,
		"merge":       "merge([for i in range(1000) : $.map]...)",
		"range":       "[for i in range(1024) : range(1024)]",
		"reverse":     "[for i in range(1000) : reverse($.numbers)]",
		"setproduct":  "setproduct($.objects, $.objects)", "setproduct of many": "setproduct([for i in range(17) : [1, 2]]...)",
		"setunion": "setunion([for i in range(300) : $.objects]...)", "setintersection": "setintersection($.objects, $.objects)", "setsubtract": "setsubtract($.objects, $.objects)",
		"slice": "[for n in range(1000) : slice($.numbers, n, 99000)]", "sort": "[for i in range(100) : sort($.texts)]", "values": "[for i in range(1000) : values($.map)]",
		"zipmap": "zipmap($.texts, $.objects)", "toset": "toset($.objects)", "tomap": "tomap({ for o in $.objects : o.id => o })", "tolist": "tolist($.objects)",
		"equal lists": "[for i in range(1000) : $.objects == reverse($.objects)]", "conversion": "convert($.objects, set(any))",
		"base64": "base64decode(base64encode($.text))", "csvdecode": "csvdecode($.csv)", "jsondecode": "[for i in range(100) : jsondecode($.json)]",
		"jsondecode of digits": `jsondecode(join("", [for t in $.texts : "77777777777777777777"]))`, "jsondecode of depth": `jsondecode(join("", [for t in $.texts : "["]))`,
		"jsonencode": "[for i in range(100) : jsonencode($.objects)]", "urlencode": "urlencode($.text)", "urldecode": "urldecode(urlencode($.text))",
		"yamldecode": "yamldecode($.yaml)", "yamldecode of anchors": `yamldecode("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]")`,
		"yamlencode": "yamlencode($.objects)", "sha512": "[for i in range(1000) : sha512($.text)]", "cidrsubnets": "cidrsubnets(\"10.0.0.0/8\", [for i in range(1000) : 24]...)", "cidrhost": `cidrhost("::/0", 1e38)`,
		"try": "try([for i in range(1000) : jsondecode($.text)]...)", "template": `"%{ for n in $.numbers }${$.texts[n % 100]}%{ endfor }"`, "loops": "[for i in range(1024) : [for j in range(1024) : i * j]]",
		"groups": "{ for n in $.numbers : \"k${n % 10}\" => n... }", "splat": "$.objects[*].deep.list[*]",
	} {
		all = append(all, expression{name, strings.ReplaceAll(text, "$.", "local.")})
	}
	return all
}

// runningFiles is the same where values of a run are used: it is the engine that
// evaluates them.
func runningFiles() []file {
	var all []file
	for _, e := range expressions() {
		all = append(all, file{e.name, func() string {
			return doubling(14) + `
flow "worst" {
  task "first" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = { text = local.t14, list = range(1000) }
  }
  ` + argumentsOf(e.text, "task.first.output.text", "task.first.output.list") + `
  task "worst" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = length(jsonencode(` + e.text + `))
    after    = [task.first]
  }
}
`
		}})
	}
	return all
}
