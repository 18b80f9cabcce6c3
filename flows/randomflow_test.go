package flows

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// scribe writes random flow files that are valid and laid out by nobody: any
// white space, comments, expressions over several lines.
type scribe struct {
	*rand.Rand
	out   strings.Builder
	tasks int   // declared so far in this flow
	depth int   // groups around
	done  []int // groups of this flow that are written to their end
	begun int   // groups of this flow
	hook  bool  // inside of on_success
	each  bool  // inside of what is evaluated for each item
	flat  int   // inside of what must stand on one line
	fixed bool  // at load: no references
	end   string
}

// randomFile is a file with one flow or more.
func randomFile(seed uint64) string {
	s := &scribe{Rand: rand.New(rand.NewPCG(seed, 6)), end: "\n"}
	if s.IntN(8) == 0 {
		s.end = "\r\n"
	}
	s.fixed = true
	s.block("locals", func() { s.line("number", func() { s.number(2) }); s.line("words", func() { s.list(2) }) })
	s.fixed = false
	for i := range 1 + s.IntN(2) {
		s.tasks, s.begun, s.done = 0, 0, nil
		s.block(fmt.Sprintf("flow %q", fmt.Sprint("f", i)), s.flow)
	}
	return s.out.String()
}

func (s *scribe) flow() {
	if s.IntN(2) == 0 {
		s.line("timeout", func() { s.write(`"1h30m"`) })
		s.fixed = true
		s.line("labels", func() { s.object(1, s.text) })
		s.fixed = false
	}
	if s.IntN(2) == 0 {
		s.block(`param "p"`, func() { s.line("type", func() { s.write("any") }); s.line("default", func() { s.write("{ n = 3 }") }) })
	}
	if s.IntN(3) == 0 {
		s.block(`trigger "schedule" "s"`, func() { s.line("cron", func() { s.write(`"0 3 * * *"`) }) })
	}
	s.members()
	if s.IntN(4) == 0 {
		s.hook = true // which have nothing to wait for in other parts
		s.block("on_success", s.members)
		s.hook = false
	}
	if s.IntN(3) == 0 {
		s.block(`wait "w"`, func() {
			s.line("when", func() { s.truth(2) })
			s.line("signal", func() { s.write("true") })
			s.line("after", func() { s.write("[task.t0]") })
		})
	}
	if s.IntN(2) == 0 {
		s.block(`output "o"`, func() { s.line("value", func() { s.value(3) }) })
	}
}

// members writes tasks and groups: one at least.
func (s *scribe) members() {
	for range 1 + s.IntN(4) {
		if s.depth < 3 && s.IntN(4) == 0 {
			number := s.begun
			s.begun++
			s.depth++
			s.block(fmt.Sprintf("group %q", fmt.Sprint("g", number)), s.group)
			s.depth--
			s.done = append(s.done, number)
			continue
		}
		s.block(fmt.Sprintf("task %q", fmt.Sprint("t", s.tasks)), s.task)
		s.tasks++
	}
}

func (s *scribe) group() {
	mode := []string{"parallel", "serial", "first_success", "race"}[s.IntN(4)]
	s.line("mode", func() { s.write(fmt.Sprintf("%q", mode)) })
	if (mode == "parallel" || mode == "race") && s.IntN(2) == 0 {
		s.line("max_parallel", func() { s.write("2") })
	}
	if s.IntN(4) == 0 {
		s.line("when", func() { s.truth(2) })
	}
	s.after()
	s.members()
}

// after refers to what is written already, which makes no circle.
func (s *scribe) after() {
	switch {
	case !s.hook && s.tasks > 0 && s.IntN(4) == 0:
		s.line("after", func() { s.write(fmt.Sprintf("[task.t%d]", s.IntN(s.tasks))) })
	case !s.hook && len(s.done) > 0 && s.IntN(4) == 0:
		s.line("after", func() { s.write(fmt.Sprintf("[group.g%d, ]", s.done[s.IntN(len(s.done))])) })
	}
}

// fanOut makes a task one that is run for each of some items.
func (s *scribe) fanOut() {
	s.line("for_each", func() {
		if s.IntN(2) == 0 {
			s.list(2)
		} else {
			s.object(2, s.value)
		}
	})
	if s.IntN(2) == 0 {
		s.line("max_parallel", func() { s.write("3") })
	}
	s.each = true
}

func (s *scribe) task() {
	s.line("plugin", func() { s.write(`"./greet.wasm"`) })
	if s.IntN(4) == 0 {
		s.line("on_error", func() { s.write([]string{`"continue"`, `"fail"`}[s.IntN(2)]) })
	}
	if s.IntN(4) == 0 {
		s.fanOut()
	}
	s.line("input", func() { s.value(4) })
	each := s.each
	s.each = false
	if s.IntN(2) == 0 {
		s.line("when", func() { s.truth(3) })
	}
	if s.IntN(3) == 0 {
		s.each = each
		s.line("config", func() { s.object(2, func(depth int) { s.value(depth) }) })
		s.each = false
	}
	if s.IntN(3) == 0 {
		s.line("description", func() { s.heredoc() })
	}
	if s.IntN(3) == 0 {
		s.block("retry", func() { s.line("attempts", func() { s.write("3") }); s.line("jitter", func() { s.write("0.5") }) })
	}
	s.after()
}

// block writes one over several lines, or an empty or a one-line one as it comes.
func (s *scribe) block(header string, body func()) {
	s.between()
	s.space()
	s.write(strings.ReplaceAll(header, " ", " "+strings.Repeat(" ", s.IntN(3))))
	s.space()
	s.write("{")
	s.rest()
	body()
	s.between()
	s.space()
	s.write("}")
	s.rest()
}

func (s *scribe) line(name string, value func()) {
	s.between()
	s.space()
	s.write(name)
	s.space()
	s.write("=")
	s.space()
	value()
	if !strings.HasSuffix(s.out.String(), s.end) { // a heredoc has ended the line
		s.rest()
	}
}

// between writes what may stand between lines.
func (s *scribe) between() {
	for s.IntN(4) == 0 {
		s.space()
		s.write([]string{"", "# a comment  ", "//another", "/* over\n  two lines */", "#"}[s.IntN(5)])
		s.write(s.end)
	}
}

// rest ends a line.
func (s *scribe) rest() {
	if s.IntN(6) == 0 {
		s.space()
		s.write([]string{"# why", "//   x", "/* y */"}[s.IntN(3)])
	}
	s.space()
	s.write(s.end)
}

func (s *scribe) write(text string) { s.out.WriteString(text) }

// space is any white space within a line, none too.
func (s *scribe) space() {
	s.write([]string{"", " ", " ", "  ", "\t", "      "}[s.IntN(6)])
	if s.IntN(30) == 0 {
		s.write("/* c */ ")
	}
}

// gap is white space inside of brackets, where lines may end.
func (s *scribe) gap() {
	s.space()
	if s.flat == 0 && s.IntN(5) == 0 {
		if s.IntN(4) == 0 {
			s.write("# inside")
		}
		s.write(s.end)
		s.space()
	}
}

// list writes items in brackets.
func (s *scribe) list(depth int) {
	s.write("[")
	for range s.IntN(4) {
		s.gap()
		s.value(depth - 1)
		s.gap()
		s.write(",")
	}
	s.gap()
	s.write("]")
}

func (s *scribe) object(depth int, value func(int)) {
	s.write("{")
	n, lines := s.IntN(4), s.flat == 0 && s.IntN(2) == 0
	for i := range n {
		if lines {
			s.rest()
		}
		s.space()
		s.write([]string{"a%d", "\"b %d\"", "(\"c%d\")", "d-%d"}[s.IntN(4)])
		key := s.out.String()
		s.out.Reset()
		s.write(strings.Replace(key, "%d", fmt.Sprint(i), 1))
		s.space()
		s.write([]string{" =", " :"}[s.IntN(2)])
		s.space()
		value(depth - 1)
		if !lines && i < n-1 {
			s.space()
			s.write(",")
		}
	}
	if lines {
		s.rest()
	}
	s.space()
	s.write("}")
}

// value writes an expression of any kind.
func (s *scribe) value(depth int) {
	if depth <= 0 {
		[]func(){func() { s.number(0) }, func() { s.text(0) }, func() { s.truth(0) }, s.reference}[s.IntN(4)]()
		return
	}
	switch s.IntN(9) {
	case 0:
		s.number(depth)
	case 1:
		s.text(depth)
	case 2:
		s.truth(depth)
	case 3:
		s.list(depth)
	case 4:
		s.object(depth, s.value)
	case 5:
		s.brackets(func() { s.choice(depth, s.value) })
	case 6:
		s.brackets(func() { s.loop(depth) })
	case 7:
		s.call(depth)
	case 8:
		s.reference()
	}
}

func (s *scribe) brackets(inside func()) {
	s.write("(")
	s.gap()
	inside()
	s.gap()
	s.write(")")
}

func (s *scribe) number(depth int) {
	switch {
	case depth <= 0:
		s.write(s.known("local.number", "0", "1", "2.50", "1e3", "-7", "12345678901234567890"))
	case s.IntN(4) == 0:
		s.write("-")
		s.brackets(func() { s.number(depth - 1) })
	default:
		s.brackets(func() {
			s.number(depth - 1)
			s.gap()
			s.write([]string{"+", " - ", "*"}[s.IntN(3)])
			s.gap()
			s.number(depth - 1)
		})
	}
}

func (s *scribe) truth(depth int) {
	if depth <= 0 {
		s.write(s.known("run.id==\"x\"", "true", "false", "! true"))
		return
	}
	s.brackets(func() {
		if s.IntN(2) == 0 {
			s.number(depth - 1)
			s.gap()
			s.write([]string{"<", ">=", "==", "!="}[s.IntN(4)])
			s.gap()
			s.number(depth - 1)
			return
		}
		s.truth(depth - 1)
		s.gap()
		s.write([]string{"&&", "||"}[s.IntN(2)])
		s.gap()
		s.write("!")
		s.truth(depth - 1)
	})
}

// text writes a quoted template.
func (s *scribe) text(depth int) {
	s.write(`"`)
	for range s.IntN(3) {
		s.write([]string{"word", " two  spaces ", `\n`, `\"`, "$${no}", "%%{no}", "{", "]", "ä", "#", "//"}[s.IntN(11)])
		if depth > 0 && s.IntN(2) == 0 {
			s.flat++
			s.write([]string{"${", "${~"}[s.IntN(2)])
			s.space()
			s.number(depth - 1)
			s.space()
			s.write([]string{"}", "~}"}[s.IntN(2)])
			s.flat--
		}
		if depth > 0 && s.IntN(5) == 0 {
			s.flat++
			s.write(`%{ if `)
			s.truth(depth - 1)
			s.write(` }yes%{ else }  no %{ endif }`)
			s.flat--
		}
	}
	s.write(`"`)
}

func (s *scribe) heredoc() {
	s.write([]string{"<<EOT", "<<-EOT"}[s.IntN(2)] + s.end)
	for range s.IntN(4) {
		s.write([]string{"plain", "    indented  ", "\ttab", "", "${ 1+local.number }", "  # no comment", "a = { b=1 }", "\"quotes\""}[s.IntN(8)] + s.end)
	}
	s.write("  EOT" + s.end)
}

func (s *scribe) choice(depth int, branch func(int)) {
	s.truth(depth - 1)
	s.gap()
	s.write("?")
	s.gap()
	s.write("jsonencode(")
	branch(depth - 1)
	s.write(")")
	s.gap()
	s.write(":")
	s.gap()
	s.write("\"x\"")
}

func (s *scribe) loop(depth int) {
	if s.IntN(2) == 0 {
		s.write("[for")
		s.write(" x in ")
		s.list(depth - 1)
		s.space()
		s.write(":")
		s.space()
		s.write("jsonencode([x,")
		s.value(depth - 1)
		s.write("])]")
		return
	}
	s.write("{for k,v in ")
	s.object(depth-1, s.value)
	s.write(" : k=>jsonencode(v)")
	s.write(" if ")
	s.truth(depth - 1)
	s.write("}")
}

func (s *scribe) call(depth int) {
	s.write([]string{"jsonencode", "can", "coalesce"}[s.IntN(3)])
	s.write("(")
	s.gap()
	s.value(depth - 1)
	s.gap()
	s.write(")")
}

// known is one of some words, the first of which is a reference.
func (s *scribe) known(words ...string) string {
	if s.fixed {
		words = words[1:]
	}
	return words[s.IntN(len(words))]
}

func (s *scribe) reference() {
	if s.fixed {
		s.write("null")
		return
	}
	names := []string{"run.id", "trigger.payload", "local.words", "local.number", "run.labels", "trigger.headers[\"X\"]"}
	if s.tasks > 0 {
		task := fmt.Sprintf("task.t%d.", s.IntN(s.tasks))
		names = append(names, task+"output", task+"output.items[0]", task+"state", task+"output.items[*].x", task+`output["n"]`)
	}
	if len(s.done) > 0 {
		group := fmt.Sprintf("group.g%d.", s.done[s.IntN(len(s.done))])
		names = append(names, group+"output", group+"state", group+"error")
	}
	if s.each {
		names = append(names, "each.key", "each.value", "each.index", "each.value.x")
	}
	s.write(names[s.IntN(len(names))])
}
