package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

const loadingStops = "loading a flow file stops nobody"

// deployments is flow files that a host loads while it serves the honest flows.
// Whether it takes or refuses them is its own decision.
func deployments() []attack {
	inSample := map[string]bool{"expression/substr": true, "many crons": true}
	var all []attack
	for _, f := range hostileFiles() {
		all = append(all, attack{
			name: "deploy/" + f.name, promise: loadingStops, short: inSample[f.name], peak: 1_000,
			run: func(ctx context.Context, s *stage) error { return s.deploy(ctx, f.text()) },
		})
	}
	for _, f := range runningFiles() {
		all = append(all, attack{
			name: "evaluate/" + f.name, promise: "an expression stops nobody else", short: f.name == "substr", peak: 1_000,
			prepare: func(ctx context.Context, s *stage) error { return s.deploy(ctx, f.text()) },
			run:     runsWorst,
		})
	}
	return all
}

// deploy replaces the attacker's flow file and returns once the host has loaded it,
// or has refused to.
func (s *stage) deploy(ctx context.Context, text string) error {
	before, err := s.decision(ctx)
	if err != nil {
		return err
	}
	if err := s.write("attacker.hcl", text); err != nil {
		return err
	}
	s.reload()
	for {
		now, err := s.decision(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case now != before:
			return nil
		}
		waitFor(ctx, 5*askPace)
	}
}

// decision names the last load of the flow files.
func (s *stage) decision(ctx context.Context) (string, error) {
	type fault struct{ At string }
	d, err := ask[struct {
		Since string
		Fault *fault
	}](ctx, s.operator, "fh.v1.api.deployed", "", nil)
	if d.Fault == nil {
		d.Fault = &fault{}
	}
	return d.Since + " " + d.Fault.At, err
}

// runsWorst asks for a run of the attacker's flow and waits for its end. A host that
// has not taken the flow has nothing to run.
func runsWorst(ctx context.Context, s *stage) error {
	ctx, cancel := context.WithTimeout(ctx, longAttack/2)
	defer cancel()
	msg, err := s.operator.RequestMsgWithContext(ctx, &nats.Msg{Subject: "fh.v1.api.run.worst", Data: []byte("{}"), Header: nats.Header{"Fh-Wait": {"25s"}}})
	if err == nil && msg.Header.Get("Nats-Service-Error-Code") != "" && !strings.Contains(string(msg.Data), "unknown_flow") {
		return fmt.Errorf("the attacker's run: %s", clip(msg.Data))
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
		return nil
	}
	return err
}

// file is a flow file.
type file struct {
	name string
	text func() string
}

// worst is a flow of the attacker whose task has these lines.
func worst(lines string) string {
	return "flow \"worst\" {\n  task \"worst\" {\n    plugin = \"./unruly.wasm\"\n    function = \"echo\"\n" + lines + "\n  }\n}\n"
}

// hostileFiles is files that are more work to load than their size tells.
func hostileFiles() []file {
	var all []file
	add := func(name string, text func() string) { all = append(all, file{name, text}) }
	input := func(name string, expression func() string) {
		add(name, func() string { return worst("    input = " + expression()) })
	}
	nest := func(n int, open, inside, end string) func() string {
		return func() string { return strings.Repeat(open, n) + inside + strings.Repeat(end, n) }
	}
	for _, n := range []int{200, 100_000} {
		of := func(kind string) string { return fmt.Sprintf("%d %s", n, kind) }
		input(of("parentheses"), nest(n, "(", "1", ")"))
		input(of("lists"), nest(n, "[", "1", "]"))
		input(of("objects"), nest(n, "{a=", "1", "}"))
		input(of("negations"), nest(n, "!", "true", ""))
		input(of("templates"), nest(n, `"${`, "1", `}"`))
		input(of("calls"), nest(n, "abs(", "1", ")"))
		input(of("conditions"), nest(n, "true ? (", "1", ") : 0"))
		input(of("loops in loops"), nest(min(n, 5_000), "[for x in [1, 2] : ", "1", "]"))
		input(of("sums"), nest(n, "1 + ", "1", ""))
		input(of("indices"), nest(n, "", "[[1]]", "[0]"))
		input(of("splats"), nest(n, "", "[1]", "[*]"))
		add(of("types"), func() string {
			return "variable \"x\" {\n  default = null\n  type = " + nest(n, "list(", "any", ")")() + "\n}\n" + worst("")
		})
		add(of("blocks"), func() string { return "flow \"worst\" {\n" + nest(n, "group \"g\" {\n", "", "}\n")() + "}\n" })
		add(of("locals in a row"), func() string {
			return "locals {\n  v0 = 1\n" + lines(min(n, 20_000), func(i int) string { return fmt.Sprintf("  v%d = local.v%d + 1", i+1, i) }) + "}\n" + worst("")
		})
		add(of("tasks in a row"), func() string {
			return "flow \"worst\" {\n" + lines(min(n, 5_000), func(i int) string {
				after := ""
				if i > 0 {
					after = fmt.Sprintf("after = [task.t%d]", i-1)
				}
				return fmt.Sprintf("  task \"t%d\" {\n    plugin = \"./unruly.wasm\"\n    function = \"echo\"\n    %s\n  }", i, after)
			}) + "}\n"
		})
		add(of("mistakes"), func() string {
			return lines(n, func(i int) string { return fmt.Sprintf("flow \"f%d\" {\n  nothing = 1\n}", i) })
		})
		add(of("flows"), func() string {
			return lines(min(n, 5_000), func(i int) string {
				return fmt.Sprintf("flow \"f%d\" {\n  wait \"w\" { signal = true }\n}", i)
			})
		})
	}
	add("tasks after all", func() string {
		var before []string
		return "flow \"worst\" {\n" + lines(500, func(i int) string {
			text := fmt.Sprintf("  task \"t%d\" {\n    plugin = \"./unruly.wasm\"\n    function = \"echo\"\n    after = [%s]\n  }", i, strings.Join(before, ", "))
			before = append(before, fmt.Sprintf("task.t%d", i))
			return text
		}) + "}\n"
	})
	add("locals that double", func() string {
		return "locals {\n  v0 = [1, 1]\n" + lines(60, func(i int) string { return fmt.Sprintf("  v%d = [local.v%d, local.v%d]", i+1, i, i) }) + "}\n" + worst("    input = local.v60")
	})
	add("text that doubles", func() string { return doubling(40) + worst("    input = local.t40") })
	input("number of digits", func() string { return strings.Repeat("7", 3<<20) })
	input("number after the point", func() string { return "0." + strings.Repeat("7", 3<<20) })
	input("number of an exponent", func() string { return "1e600000000 % 7" })
	input("text", func() string { return `"` + strings.Repeat("x", 8<<20) + `"` })
	input("list of numbers", func() string { return "[" + repeatTo(4<<20, func(i int) string { return fmt.Sprint(i) }) + "]" })
	input("object of keys", func() string {
		return "{" + repeatTo(2<<20, func(i int) string { return fmt.Sprintf("k%d = %d", i, i) }) + "}"
	})
	for _, cron := range []string{"0 0 29 2 1#5", "0 0 1-7 2 mon#5", "0 0 0 29 2 mon#1 2100-2262", "59 59 23 31 12 sun#5", "*/59 */59 */23 */31 */12 *"} {
		name := "many crons"
		if cron != "0 0 1-7 2 mon#5" {
			name += " " + strings.ReplaceAll(cron, "/", "|")
		}
		add(name, func() string {
			return "flow \"worst\" {\n  wait \"w\" { signal = true }\n" + lines(2_000, func(i int) string {
				return fmt.Sprintf("  trigger \"schedule\" \"s%d\" {\n    cron = %q\n    day_match = \"and\"\n    timezone = \"Africa/Casablanca\"\n  }", i, cron)
			}) + "}\n"
		})
	}
	add("many calendars", func() string {
		return "flow \"worst\" {\n  wait \"w\" { signal = true }\n" + lines(2_000, func(i int) string {
			return fmt.Sprintf("  trigger \"schedule\" \"s%d\" {\n    calendar = \"Mon *-02~29/1 23:59:5%d\"\n  }", i, i%10)
		}) + "}\n"
	})
	for _, e := range expressions() {
		add("expression/"+e.name, func() string {
			return doubling(17) + argumentsOf(e.text, "local.t17", "range(1000)") + worst("    input = "+e.text)
		})
	}
	return all
}

func lines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// doubling is locals t0 to tn, each twice the one before.
func doubling(n int) string {
	return "locals {\n  t0 = \"aé1,\\n\"\n" + lines(n, func(i int) string { return fmt.Sprintf("  t%d = \"${local.t%d}${local.t%d}\"", i+1, i, i) }) + "}\n"
}
