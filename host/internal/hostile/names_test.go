package hostile

import "strings"

// reservedNames is guests that use names which mean something to the host.
func reservedNames() []attack {
	const sandbox = "flowhost:sandbox"
	exporting := func(name string, kind byte) func() []byte {
		g := runs(number(0))
		g.globals = []code{seq(code{i64, 1}, number64(1<<62), end)}
		g.table = &bounds{1, 1}
		g.exports = []code{seq(text(name), code{kind, 0})}
		return g.bytes
	}
	importing := func(what imported) func() []byte {
		return guest{imports: []imported{what}, functions: []function{{export: "run", kind: task, body: number(0)}}}.bytes
	}
	return []attack{
		{name: "names/units", what: "a global of one's own under the name of the time that is left", want: refused, module: exporting(sandbox+"/units", 3)},
		{name: "names/depth", what: "the same for the depth", want: refused, module: exporting(sandbox+"/depth", 3)},
		{name: "names/changed", what: "the same for what was changed", want: refused, module: exporting(sandbox+"/changed", 3)},
		{name: "names/global", what: "the same for a mutable global", want: refused, module: exporting(sandbox+"/global/0", 3)},
		{name: "names/function", what: "a function under a name of the sandbox", want: refused, module: exporting(sandbox+"/units", 0)},
		{name: "names/interrupt", what: "the host's own import", want: refused,
			module: importing(imported{sandbox, "interrupt", signature{params: []byte{i32}}})},
		{name: "names/unknown import", what: "an import that nobody offers", want: refused, module: importing(imported{"env", "system", errno(i32)})},
		{name: "names/wrong type", what: "an import with a type of one's own", want: refused, module: importing(imported{wasi, "fd_write", errno(i64)})},
		{name: "names/table as memory", what: "something else under the name of the memory", want: refused, module: exporting("memory", 1)},
		{name: "names/reserved function", what: "a function with a name of the host's", module: guest{functions: []function{
			{export: "run", kind: task, body: number(0)}, {export: "flowhost_run", kind: task, body: unreachable},
		}}.bytes, calls: []step{{"flowhost_run", "rejected function"}, {"_initialize", "rejected function"}, {"memory", "rejected function"}, {"", succeeds}}},
		{name: "names/both kinds", what: "a command that imports what only reactors may", want: refused, module: guest{
			imports:   []imported{setOutput},
			functions: []function{{export: "_start", kind: nothing}},
		}.bytes},
	}
}

// manifests is modules that describe themselves badly. A manifest is asked for
// when a module is prepared, outside any call: it has a time of its own, 5 s.
func manifests() []attack {
	withSection := func(content string) func() []byte {
		g := runs(number(0))
		g.custom = []code{customSection("flowhost.manifest", content)}
		return g.bytes
	}
	describes := func(body ...code) func() []byte {
		return guest{imports: []imported{setOutput, procExit}, pages: 32, functions: []function{
			{export: "run", kind: task, body: number(0)},
			{export: "flowhost_manifest", kind: task, body: seq(body...)},
			inner(call(4)),
		}}.bytes
	}
	attacks := []attack{
		{name: "manifest/large", what: "a section of a MiB", module: withSection(strings.Repeat("[", mebi))},
		{name: "manifest/nested", what: "60 000 arrays in each other", module: withSection(strings.Repeat("[", 60_000))},
		{name: "manifest/reserved", what: "a function listed under a name of the host's", module: withSection(`{"abi":1,"functions":[{"name":"flowhost_x"}]}`)},
		{name: "manifest/not there", what: "a function listed that does not exist", module: withSection(`{"abi":1,"functions":[{"name":"absent"}]}`)},
		{name: "manifest/no text", what: "a name that is no text", module: withSection("{\"abi\":1,\"functions\":[{\"name\":\"\xff\\ud800\"}]}")},
		{name: "manifest/written large", what: "an export that writes a MiB", module: describes(number(0), number(mebi), call(0))},
		{name: "manifest/traps", what: "an export that breaks", module: describes(unreachable)},
		{name: "manifest/exits", what: "an export that exits", module: describes(number(0), call(1), number(0))},
		{name: "manifest/recursion", what: "an export that calls itself", module: describes(call(4), number(0)), peak: 500},
		{name: "manifest/loop", what: "an export that does not end", module: describes(forever()), prepares: 8_000_000_000, slow: true},
	}
	for i := range attacks {
		attacks[i].want = refused
	}
	return attacks
}
