package hostile

import "context"

// moduleFlow runs a task several times, a few at a time. What a single module can do
// is in host/internal/hostile; this is about what a flow lets it do to others.
func moduleFlow(task string) string {
	return `
flow "worst" {
  task "worst" {
    for_each     = range(12)
    max_parallel = 4
    on_error     = "continue"
` + task + `
  }
}
`
}

// modules is guests that flood, allocate, compute and sleep.
func modules() []attack {
	unruly := func(function, more string) string {
		return moduleFlow("    plugin = \"./unruly.wasm\"\n    function = \"" + function + "\"\n" + more)
	}
	flood := func(input, limits string) string {
		return moduleFlow("    plugin = \"./flood-cmd.wasm\"\n    timeout = \"1s\"\n    input = " + input + "\n    limits {\n" + limits + "\n    }")
	}
	var all []attack
	for _, m := range []struct{ name, flows string }{
		{"computes", unruly("spin", `    timeout = "300ms"`)},
		{"computes beyond its run", unruly("spin", `    timeout = "10s"`) + "\n"},
		{"allocates", unruly("hoard", "    limits {\n      memory = \"256MiB\"\n    }")},
		{"logs", unruly("chatter", "")},
		{"sleeps", unruly("nap", "    timeout = \"500ms\"\n    input = { milliseconds = 3600000 }")},
		{"sleeps shortly", unruly("nap", "    timeout = \"5s\"\n    input = { milliseconds = 1 }")},
		{"floods output", flood(`{}`, `output = "1MiB"`)},
		{"floods a huge output", flood(`{}`, `output = "900GiB"`)},
		{"floods the largest output", flood(`{}`, `output = "16MiB"`)},
		{"floods the largest log", flood(`{ log = true }`, `log = "4MiB"`)},
		{"floods log", flood(`{ log = true }`, `log = "64KiB"`)},
		{"floods a huge log", flood(`{ log = true }`, `log = "900GiB"`)},
		{"floods lines", flood(`{ log = true, lines = true }`, `log = "900GiB"`)},
	} {
		all = append(all, attack{
			name: "module/" + m.name, promise: "a module stops nobody else", peak: 1_400, short: m.name == "computes" || m.name == "floods a huge output",
			prepare: func(ctx context.Context, s *stage) error { return s.deploy(ctx, m.flows) },
			run:     runsWorst,
		})
	}
	return all
}
