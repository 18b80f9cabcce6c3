package sqlreach

import (
	"strings"

	"github.com/flowhost/flowhost/run/access"
)

// maxWords is how many words scan keeps: WITH and its table expressions' names come before
// the keyword that counts.
const maxWords = 4096

// scan gives the words outside of parentheses, strings and comments, in upper case, and
// reports whether a second statement follows. Opening parentheses before the first word
// are skipped. Quoted names are left out, also where a word is expected.
//
// It is exact for SQLite. For servers, whose settings change how strings end, it is a
// first look: they take one statement only, whatever scan finds.
func scan(kind, text string) (words []string, several bool) {
	s := scanner{kind: kind, text: text}
	for depth, ended := 0, false; ; {
		s.semicolon = s.prev == ";"
		token := s.next()
		s.prev = token
		switch {
		case token == "":
			return words, several
		case ended:
			return words, true
		case token == "(" && len(words) > 0:
			depth++
		case token == ")" && depth > 0:
			depth--
		case token == ";":
			ended = !s.inBody(words)
		case isWord(token[0]):
			s.end = s.semicolon && strings.EqualFold(token, "END")
			if depth == 0 && len(words) < maxWords {
				words = append(words, strings.ToUpper(token))
			}
			continue
		case len(words) == 0 && token != "(":
			words = append(words, token) // no keyword: refused by whoever looks for it
		}
	}
}

// scanner reads the tokens of a statement.
type scanner struct {
	kind string
	text string
	at   int
	prev string // token

	semicolon bool // was the token before
	end       bool // the last word is END, right after a semicolon: where a trigger's body ends
}

// isTrigger reports whether the statement makes a trigger, whose body has semicolons.
func (s *scanner) isTrigger(words []string) bool {
	if len(words) < 2 || words[0] != "CREATE" {
		return false
	}
	return words[1] == "TRIGGER" || (words[1] == "TEMP" || words[1] == "TEMPORARY") && len(words) > 2 && words[2] == "TRIGGER"
}

// inBody reports whether a semicolon is within a body. Those of functions and triggers of
// a server are for the server to judge.
func (s *scanner) inBody(words []string) bool {
	switch {
	case len(words) == 0:
		return false
	case s.kind == access.TypeSQLite:
		return s.isTrigger(words) && !s.end
	}
	return words[0] == "CREATE" || words[0] == "ALTER"
}

// next is the next token: a word, a string as its first quote, or a byte; "" at the end.
func (s *scanner) next() string {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		c := rest[0]
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			s.at++
		case s.lineComment(rest):
			s.skipTo("\n")
		case strings.HasPrefix(rest, "/*"):
			s.blockComment()
		case c == '\'' || c == '"' || c == '`' || c == '[' && s.kind == access.TypeSQLite:
			s.quoted(c)
			return rest[:1]
		case c == '$' && s.kind == access.TypePostgres && s.dollarQuoted(rest):
			return "'"
		case isWord(c):
			return s.word(rest)
		default:
			s.at++
			return rest[:1]
		}
	}
	return ""
}

// lineComment: MySQL wants a space after two dashes, which are a sum otherwise, and has #.
func (s *scanner) lineComment(rest string) bool {
	if s.kind == access.TypeMySQL {
		return rest[0] == '#' || strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' ')
	}
	return strings.HasPrefix(rest, "--")
}

func (s *scanner) skipTo(end string) {
	if i := strings.Index(s.text[s.at:], end); i >= 0 {
		s.at += i + len(end)
	} else {
		s.at = len(s.text)
	}
}

// blockComment: PostgreSQL's nest.
func (s *scanner) blockComment() {
	depth := 0
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.HasPrefix(rest, "/*") && (depth == 0 || s.kind == access.TypePostgres):
			depth++
			s.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			s.at += 2
		default:
			s.at++
		}
		if depth == 0 {
			return
		}
	}
}

// quoted skips a string or a quoted name. A doubled quote is two strings, which is as good
// here. A backslash escapes in MySQL, and in PostgreSQL's E strings.
func (s *scanner) quoted(quote byte) {
	if quote == '[' {
		s.skipTo("]")
		return
	}
	escapes := quote != '`' && (s.kind == access.TypeMySQL ||
		s.kind == access.TypePostgres && quote == '\'' && s.at > 0 && s.text[s.at-1]|0x20 == 'e' && (s.at == 1 || !isWord(s.text[s.at-2])))
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && escapes:
			s.at++
		case c == quote:
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// dollarQuoted skips $tag$ … $tag$.
func (s *scanner) dollarQuoted(rest string) bool {
	end := 1
	for end < len(rest) && isWord(rest[end]) && rest[end] != '$' {
		end++
	}
	if end == len(rest) || rest[end] != '$' || end > 1 && rest[1] >= '0' && rest[1] <= '9' {
		return false
	}
	s.at += end + 1
	s.skipTo(rest[:end+1])
	return true
}

func (s *scanner) word(rest string) string {
	end := 0
	for end < len(rest) && (isWord(rest[end]) || end > 0 && rest[end] == '$') {
		end++
	}
	s.at += end
	return rest[:end]
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
