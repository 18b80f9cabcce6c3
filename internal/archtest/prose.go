package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Phrase is wording that neither the documentation nor comments, help and errors
// use. CONTRIBUTING.md has the rule behind the table.
type Phrase struct {
	Banned string // regular expression, matched as whole words in any case; a space also matches the end of a line
	Better string
}

// Phrases is the table of banned wording.
var Phrases = []Phrase{
	{`anew`, `"again", or the verb: reload, rebuild, restart, replace`},
	{`for ever`, `"forever", or the bound that is missing: "without limit", "until it is canceled"`},
	{`as new`, `"pristine", "fresh"`},
	{`told of`, `the actor and the verb: "the host logs …", "observers receive …"`},
	{`(?:is|are|was|were|be) told`, `the actor and the verb: "the host logs …", "the client receives …"`},
	{`goes on`, `"continues", "resumes"`},
	{`whole numbers?`, `"integer"`},
	{`(?:sub)?folders?`, `"directory"`},
	{`(?:behaviour|colour|favour|neighbour)s?`, `it the American way: behavior, color, favor, neighbor`},
	{`(?:initialis|normalis|optimis|recognis|serialis)\w+`, `it the American way, with a "z"`},
	{`cancell(?:ed|ing)`, `it the American way: canceled, canceling`},
}

// Allowance is the number of findings that are still in the files below a path. It
// may only shrink, and must be exact: whoever removes a finding lowers it.
type Allowance struct {
	Path     string // longest match wins
	Findings int
}

// Allowances is the table of findings that wait to be rewritten. Paths without a row
// have none; a row with no findings left is removed.
var Allowances = []Allowance{
	{"bus", 1},                    // the description of a stream, which is stored
	{"docs/connections.md", 6},    // the names of types in the schema, which flows defines
	{"docs/flow-language.md", 15}, // the names of types in the schema, which flows defines
	{"flows", 2},                  // the same names
	{"host", 1},                   // the name of a type
	{"internal/archtest", 6},      // the table of phrases
	{"run", 1},                    // the name of a field
}

// Page is one Markdown file.
type Page struct {
	Path string // from the module's root, with slashes
	Text string
}

// ReadPages reads the Markdown files of the module, from the directories that
// [Read] reads.
func ReadPages(root fs.FS) ([]Page, error) {
	var pages []Page
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && leftOut(root, name):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		pages = append(pages, Page{name, string(text)})
		return err
	})
	return pages, err
}

// CheckProse compares the findings in comments, string literals and pages with the
// allowances. Tests may use any wording.
func CheckProse(packages []*Package, pages []Page, phrases []Phrase, allowances []Allowance) []Violation {
	search := compile(phrases)
	findings := map[string][]Violation{} // by the path of the allowance, or of the file without one
	add := func(file string, texts []passage) {
		path := allowanceOf(allowances, file)
		for _, t := range texts {
			findings[path] = append(findings[path], search.in(file, t)...)
		}
	}
	for _, p := range packages {
		for _, f := range p.Files {
			if !f.Test {
				add(f.Path, goProse(f))
			}
		}
	}
	for _, page := range pages {
		add(page.Path, markdownProse(page.Text))
	}
	return compareAllowances(findings, allowances)
}

// compareAllowances reports each finding without an allowance, and each allowance
// that is not the number of findings.
func compareAllowances(findings map[string][]Violation, allowances []Allowance) []Violation {
	var found []Violation
	for _, a := range allowances {
		have := findings[a.Path]
		delete(findings, a.Path)
		switch count := len(have); {
		case count > a.Findings:
			found = append(found, Violation{a.Path, fmt.Sprintf("%d findings, and archtest.Allowances has %d", count, a.Findings),
				"reword what is new among these"})
			found = append(found, have...)
		case count < a.Findings:
			found = append(found, Violation{a.Path, fmt.Sprintf("%d findings, and archtest.Allowances has %d", count, a.Findings),
				fmt.Sprintf("lower the row to %d, or remove it when nothing is left", count)})
		}
	}
	for _, have := range findings {
		found = append(found, have...)
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.Place, b.Place) })
	return found
}

// allowanceOf is the longest path of an allowance that holds the file, or the file.
func allowanceOf(allowances []Allowance, file string) string {
	best := ""
	for _, a := range allowances {
		if within(file, a.Path) && len(a.Path) > len(best) {
			best = a.Path
		}
	}
	return cmp.Or(best, file)
}

// searcher is the compiled table of phrases.
type searcher []struct {
	*regexp.Regexp
	better string
}

func compile(phrases []Phrase) searcher {
	s := make(searcher, len(phrases))
	for i, p := range phrases {
		s[i].Regexp = regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(p.Banned, " ", `\s+`) + `)\b`)
		s[i].better = p.Better
	}
	return s
}

func (s searcher) in(file string, p passage) []Violation {
	var found []Violation
	for _, phrase := range s {
		for _, at := range phrase.FindAllStringIndex(p.text, -1) {
			line := p.line + strings.Count(p.text[:at[0]], "\n")
			words := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
			found = append(found, Violation{fmt.Sprintf("%s:%d", file, line), strconv.Quote(words), "write " + phrase.better})
		}
	}
	return found
}

// passage is prose that begins on a line of a file and has the file's line ends.
type passage struct {
	line int
	text string
}

var commentMarks = regexp.MustCompile(`(?m)^\s*(?://|/\*)|\*/`)

// goProse is the text of a file's comments, and of its string literals that hold
// more than one word: names that are stored or sent are no prose.
func goProse(f *File) []passage {
	var all []passage
	for _, group := range f.Syntax.Comments {
		lines := make([]string, len(group.List))
		for i, c := range group.List {
			lines[i] = commentMarks.ReplaceAllString(c.Text, "")
		}
		all = append(all, passage{f.line(group), strings.Join(lines, "\n")})
	}
	tags := map[*ast.BasicLit]bool{} // of the fields of structs: names, too
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				tags[n.Tag] = true
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING || tags[n] {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil || !strings.ContainsAny(text, " \n") {
				return true
			}
			if n.Value[0] != '`' {
				text = strings.ReplaceAll(text, "\n", " ") // it is one line of the file
			}
			all = append(all, passage{f.line(n), text})
		}
		return true
	})
	return all
}

var (
	codeSpans   = regexp.MustCompile("`[^`\n]*`")
	linkTargets = regexp.MustCompile(`\]\([^)\n]*\)`)
)

// markdownProse is a page without its code: fenced and indented blocks, and spans.
func markdownProse(text string) []passage {
	lines := strings.Split(text, "\n")
	fence := ""
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " ")
		mark := trimmed[:min(3, len(trimmed))]
		switch isFence := mark == "```" || mark == "~~~"; {
		case isFence && fence == "":
			fence = mark
		case isFence && mark == fence:
			fence = ""
		case fence == "" && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t"):
			continue
		}
		lines[i] = ""
	}
	prose := strings.Join(lines, "\n")
	// Something stays, so that the words on both sides do not become one phrase.
	prose = codeSpans.ReplaceAllString(prose, "`")
	return []passage{{1, linkTargets.ReplaceAllString(prose, "]")}}
}
