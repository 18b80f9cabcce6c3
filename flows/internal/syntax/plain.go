package syntax

// plainDepth gives the depth of a file in HCL's own syntax, as [nesting] has it, when the
// file is written so plainly that no lexer is needed to find its brackets and operators:
// ASCII outside of strings, strings of one line, templates that hold references only, no
// heredocs, no comments over lines. Lexing takes a third of the time and memory of parsing,
// and most files are plain.
func plainDepth(src []byte) (depth int, ok bool) {
	p := plainSource{src: src}
	for p.pos < len(src) {
		if !p.step() {
			return 0, false
		}
		p.pos++
	}
	return p.deepest, len(p.brackets) == 0
}

// plainSource is a plain file that is read.
type plainSource struct {
	nesting
	src      []byte
	pos      int
	brackets []byte // that are open
	deepest  int
}

func (p *plainSource) push(lines bool) {
	p.nesting.push(lines)
	p.deepest = max(p.deepest, p.depth())
}

func (p *plainSource) operator() {
	p.nesting.operator()
	p.deepest = max(p.deepest, p.depth())
}

// step reads what begins at a byte of code, and stops at the last byte of it.
func (p *plainSource) step() bool {
	switch c := p.src[p.pos]; c {
	case '\n':
		if p.last.lines || len(p.open) == 0 {
			p.end()
		}
	case ',':
		p.end()
	case '#':
		p.skipComment()
	case '/':
		switch p.next() {
		case '*':
			return false
		case '/':
			p.skipComment()
			return true
		}
		p.operator()
	case '<':
		if p.next() == '<' {
			return false
		}
		p.operator()
	case '!', '-', '+', '*', '%', '?', '.', '&', '|', '>', '=', ':':
		p.operator()
	case '"':
		p.pos++
		p.push(false)
		defer p.pop()
		return p.text()
	default:
		return c == ' ' || c == '\t' || c == '\r' || c == '_' || isAlphanumeric(c) || p.bracket(c)
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// next is the byte after this one, 0 at the end.
func (p *plainSource) next() byte {
	if p.pos+1 < len(p.src) {
		return p.src[p.pos+1]
	}
	return 0
}

// bracket opens or closes one.
func (p *plainSource) bracket(c byte) bool {
	switch c {
	case '[':
		p.operator()
		p.push(false)
		p.brackets = append(p.brackets, ']')
	case '(':
		p.push(false)
		p.brackets = append(p.brackets, ')')
	case '{':
		p.push(true)
		p.brackets = append(p.brackets, '}')
	case ']', ')', '}':
		top := len(p.brackets) - 1
		if top < 0 || p.brackets[top] != c {
			return false
		}
		p.brackets = p.brackets[:top]
		p.pop()
	default:
		return false
	}
	return true
}

// skipComment ends before the end of the line, which belongs to the comment: it ends no
// expression.
func (p *plainSource) skipComment() {
	for p.pos < len(p.src) && p.src[p.pos] != '\n' {
		p.pos++
	}
}

// text reads a string up to its quote.
func (p *plainSource) text() bool {
	for ; p.pos < len(p.src); p.pos++ {
		switch p.src[p.pos] {
		case '"':
			return true
		case '\\':
			p.pos++
			if p.pos < len(p.src) && p.src[p.pos] == '\n' {
				return false
			}
		case '\n', '%':
			return false
		case '$':
			if p.next() != '{' {
				return false
			}
			p.pos += 2
			if !p.reference() {
				return false
			}
		}
	}
	return false
}

// reference reads a template that holds a reference, up to its bracket. Each of its points
// and indexes nests no deeper than an operator and a bracket.
func (p *plainSource) reference() bool {
	p.push(false)
	defer p.pop()
	for ; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == '}':
			return true
		case c == '.' || c == '[':
			p.operator()
			p.operator()
		case c != '_' && c != '-' && c != ' ' && c != ']' && !isAlphanumeric(c):
			return false
		}
	}
	return false
}
