package syntax

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// The parsers of hcl recurse, and a stack that is used up ends the process. So
// source is looked through before it is parsed.
const (
	MaxNesting = 1000    // brackets, templates and operators within each other
	MaxSource  = 1 << 20 // bytes of a flow file or a file of values
	maxMelded  = 4 << 30 // bytes that hcl moves to join the lines of strings
)

// lexer is hclsyntax.LexConfig, LexTemplate or LexExpression.
type lexer func([]byte, string, hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)

// checkNative reports source in HCL's native syntax that must not be parsed.
func checkNative(src []byte, filename string, lex lexer) hcl.Diagnostics {
	if len(src) > MaxSource {
		return tooLarge(diag.StartOf(filename))
	}
	if !couldNest(src) && !couldBeLong(src) {
		return nil
	}
	tokens, _ := lex(src, filename, hcl.InitialPos)
	var n nesting
	var melded melding
	for _, t := range tokens {
		if n.add(t.Type); n.depth() > MaxNesting {
			return tooDeep(t.Range)
		}
		if melded.add(t); melded.moved > maxMelded {
			return tooManyLines(t.Range)
		}
		if t.Type == hclsyntax.TokenNumberLit && ctyjson.CheckNumber(t.Bytes) != nil {
			return tooLong(t.Range)
		}
	}
	return nil
}

// couldBeLong spares most files a second lexing, too: it looks for digits that may be
// those of a number that must not be parsed.
func couldBeLong(src []byte) bool {
	run, exponent := 0, false
	for i, c := range src {
		switch {
		case c >= '0' && c <= '9' || c == '.':
			if run++; run > ctyjson.MaxDigits || exponent && run >= len("1000") {
				return true
			}
		case (c == '+' || c == '-') && exponent && run == 0:
		default:
			exponent = (c == 'e' || c == 'E') && i > 0 && run > 0
			run = 0
		}
	}
	return false
}

// couldNest spares most files a second lexing: it counts every character with
// which brackets, operators and the pieces of strings begin.
func couldNest(src []byte) bool {
	n := 0
	for _, c := range src {
		switch c {
		case '(', '[', '{', '"', '!', '-', '?', '+', '*', '/', '%', '<', '>', '&', '|', '.', '=', '\n', '$':
			n++
		}
	}
	return n > MaxNesting
}

// nesting bounds the depth of the syntax tree at one token: the brackets that
// are open, and the operators so far in each of them.
type nesting struct {
	open  []level
	last  level // the innermost one
	total int   // operators in all that is open
}

type level struct {
	operators int
	lines     bool // the end of a line ends an expression
}

func (n *nesting) depth() int { return len(n.open) + n.total }

func (n *nesting) add(t hclsyntax.TokenType) {
	switch t {
	case hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp:
		n.push(false)
	case hclsyntax.TokenOBrace:
		n.push(true)
	case hclsyntax.TokenOBrack, hclsyntax.TokenTemplateControl:
		n.operator() // indexes and directives nest without being in brackets
		n.push(false)
	case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		n.pop()
	case hclsyntax.TokenComma:
		n.end()
	case hclsyntax.TokenNewline:
		if n.last.lines || len(n.open) == 0 {
			n.end()
		}
	case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
		hclsyntax.TokenPercent, hclsyntax.TokenQuestion, hclsyntax.TokenDot, hclsyntax.TokenAnd, hclsyntax.TokenOr,
		hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq,
		hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq:
		n.operator()
	}
}

func (n *nesting) operator() {
	n.last.operators++
	n.total++
}

// end forgets the operators of an expression that has come to its end.
func (n *nesting) end() {
	n.total -= n.last.operators
	n.last.operators = 0
}

func (n *nesting) push(lines bool) {
	n.open = append(n.open, n.last)
	n.last = level{lines: lines}
}

func (n *nesting) pop() {
	n.end()
	if top := len(n.open) - 1; top >= 0 {
		n.last, n.open = n.open[top], n.open[:top]
	}
}

// melding counts what hcl moves to join the pieces of a string, which are its lines and
// what is around a single $ or %: for each piece the text so far and all pieces after it.
type melding struct {
	pieces
	outer []pieces // of the strings around this one
	moved int
}

// pieces are those of one text so far.
type pieces struct {
	run   int // bytes of those that follow each other
	joins int // each of which moves what comes after it
}

func (m *melding) add(t hclsyntax.Token) {
	const each = 16 // bytes of a piece in a list
	switch t.Type {
	case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit:
		m.moved += each * m.joins
		if m.run > 0 {
			m.moved += m.run
			m.joins++
		}
		m.run += len(t.Bytes)
	case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		m.run = 0
		m.moved += each * m.joins
	case hclsyntax.TokenOHeredoc, hclsyntax.TokenOQuote:
		m.outer = append(m.outer, m.pieces)
		m.pieces = pieces{}
	case hclsyntax.TokenCHeredoc, hclsyntax.TokenCQuote:
		if top := len(m.outer) - 1; top >= 0 {
			m.pieces, m.outer = m.outer[top], m.outer[:top]
		}
	}
}

// checkJSON does the same for the JSON syntax, whose strings may be templates.
func checkJSON(src []byte, filename string) hcl.Diagnostics {
	if len(src) > MaxSource {
		return tooLarge(diag.StartOf(filename))
	}
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			length := ctyjson.NumberLength(src[i:])
			if ctyjson.CheckNumber(src[i:i+length]) != nil {
				return tooLong(diag.StartOf(filename))
			}
			i += max(length, 1) - 1
		case '"':
			end := endOfText(src, i)
			if diags := checkTemplate(src[i:end], filename); diags.HasErrors() {
				return diags
			}
			i = end - 1
		}
		if depth > MaxNesting {
			return tooDeep(diag.StartOf(filename))
		}
	}
	return nil
}

// checkTemplate looks through a string of the JSON syntax.
func checkTemplate(quoted []byte, filename string) hcl.Diagnostics {
	var text string
	if len(quoted) <= MaxNesting && !couldBeLong(quoted) || json.Unmarshal(quoted, &text) != nil {
		return nil
	}
	diags := checkNative([]byte(text), filename, hclsyntax.LexTemplate)
	for _, d := range diags {
		at := diag.StartOf(filename)
		d.Subject = &at
	}
	return diags
}

// endOfText is the index after the text in quotes that begins at start.
func endOfText(src []byte, start int) int {
	for i := start + 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}

func tooLarge(at hcl.Range) hcl.Diagnostics {
	return refuse(at, "File too large", fmt.Sprintf("A file may have %d bytes at most. Split it up.", MaxSource))
}

func tooManyLines(at hcl.Range) hcl.Diagnostics {
	return refuse(at, "String of too many lines", "Reading the strings of this file would take the square of their lines. Put a long string into a separate file and read it with file(\"…\").")
}

func tooDeep(at hcl.Range) hcl.Diagnostics {
	return refuse(at, "Nested too deeply", fmt.Sprintf("Brackets, templates and operators may be nested %d deep. Use locals for the parts.", MaxNesting))
}

func tooLong(at hcl.Range) hcl.Diagnostics {
	return refuse(at, "Number too long", fmt.Sprintf("A number may have %d digits, and an exponent from -%d to %d. Write it as a string.", ctyjson.MaxDigits, ctyjson.MaxExponent, ctyjson.MaxExponent))
}

func refuse(at hcl.Range, summary, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at, Extra: &diag.Extra{Rule: diag.RuleSyntax}}}
}
