// Package docs_test compares the documentation with the program: its flow files
// load, its plugins build, its lists are complete, and its links lead somewhere.
package docs_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/internal/flowtest"
	"github.com/flowhost/flowhost/plugins/std"
	"github.com/flowhost/flowhost/run"
)

// block is a fenced block of a page. Its info string is its kind:
//
//	hcl            a whole flow file, which loads
//	hcl wrong R    a whole flow file, which is refused by rule R and no other
//	hcl fragment   part of a flow
//	hcl tests F    tests of the flow F of the page, which pass
//	hcl values     values of variables
//	hcl settings   settings of the host, loaded by a test of the command line
//	hcl file F     the file F of examples/guide
//	json flow      a whole flow file in the JSON syntax
//	go plugin      a plugin's main.go, which builds
//	go test        a test beside the plugin before it, which passes
//	go client      a program that builds with this module's dependencies
//
// Blocks of any other kind are ignored.
type block struct {
	page string
	line int
	info string
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// blocks returns the fenced blocks of the pages in this directory.
func blocks(t *testing.T) []block {
	t.Helper()
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	var found []block
	for _, page := range pages {
		found = append(found, blocksOf(t, page)...)
	}
	return found
}

func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	file, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var found []block
	var open *block
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		info, fence := strings.CutPrefix(lines.Text(), "```")
		switch {
		case fence && open == nil:
			open = &block{page: page, line: n, info: info}
		case fence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += lines.Text() + "\n"
		}
	}
	if open != nil || lines.Err() != nil {
		t.Fatalf("%s: a block has no end: %v", page, lines.Err())
	}
	return found
}

// modules are the plugins that the pages name, with their functions.
type modules map[string][]string

var known = modules{
	"greet.wasm": {"greet"}, "pricing.wasm": {"main", "approve"}, "review.wasm": {"review"},
	"notify.wasm": {"send"}, "words.wasm": {"main"}, "primes.wasm": {"split", "count", "join"},
	"pg.wasm": {"list_tables"}, "warehouse.wasm": {"copy_table", "chat", "mail"},
}

func (m modules) Signature(_ context.Context, path string) (run.Signature, error) {
	s := run.Signature{Digest: "sha256:" + strings.Repeat("0", 64), ABI: "flowhost"}
	for _, name := range m[filepath.Base(path)] {
		s.Functions = append(s.Functions, run.FunctionSignature{Name: name})
	}
	if s.Functions == nil {
		return s, fmt.Errorf("the pages have no plugin %s", path)
	}
	return s, nil
}

func (m modules) SignatureOf(ctx context.Context, _ string) (run.Signature, error) {
	return m.Signature(ctx, "greet.wasm")
}

// surroundings make a flow file of a fragment: they add the plugins, and the tasks to
// which it refers without declaring them.
func surroundings(fragment string) string {
	var file strings.Builder
	for _, name := range []string{"pricing", "review", "notify"} {
		fmt.Fprintf(&file, "plugin %q {\n  source = \"./%s.wasm\"\n}\n", name, name)
	}
	file.WriteString("flow \"example\" {\n")
	if !strings.Contains(fragment, `task "price"`) {
		file.WriteString("  task \"price\" {\n    plugin = plugin.pricing\n  }\n")
	}
	return file.String() + fragment + "}\n"
}

func load(t *testing.T, name, content string) hcl.Diagnostics {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(filepath.Join(filepath.Dir(file), "data"), 0o700); err != nil { // which the pages grant
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, diags := flows.Load(t.Context(), []string{file}, flows.Options{Catalog: known, Standard: standard})
	return diags
}

// standard is the standard plugins as the program has them.
var standard = flows.Standard{Names: std.Names(), Signature: func(ctx context.Context, name string) (run.Signature, error) {
	module, ok := std.Find(name)
	if !ok {
		return run.Signature{}, fs.ErrNotExist
	}
	h, err := reader()
	if err != nil {
		return run.Signature{}, err
	}
	return host.Catalog{Host: h, Defer: true, Discard: true}.Embedded(ctx, module.Digest, module.Open)
}}

// reader is a host that reads modules and calls none; it ends with the tests.
var reader = sync.OnceValues(func() (*host.Host, error) { return host.New(context.Background(), host.Config{}) })

func TestFlowFiles(t *testing.T) {
	t.Parallel()
	for _, b := range blocks(t) {
		name, content, wrong := "flow.hcl", b.text, ""
		switch {
		case b.info == "hcl":
		case b.info == "hcl fragment":
			content = surroundings(b.text)
		case b.info == "json flow":
			name = "flow.hcl.json"
		case strings.HasPrefix(b.info, "hcl wrong "):
			wrong = strings.TrimPrefix(b.info, "hcl wrong ")
		default:
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			check(t, load(t, name, content), flows.Rule(wrong))
			if formatted, _ := flows.Format([]byte(b.text), name); string(formatted) != b.text {
				t.Errorf("not in canonical form, which is:\n%s", formatted)
			}
		})
	}
}

// check fails for any diagnostic, or, when one is wanted, for any other.
func check(t *testing.T, diags hcl.Diagnostics, want flows.Rule) {
	t.Helper()
	for _, d := range diags {
		if flows.RuleOf(d) != want {
			t.Errorf("%s: %v", flows.RuleOf(d), d)
		}
	}
	if want != "" && len(diags) != 1 {
		t.Errorf("%d diagnostics, want one of rule %s", len(diags), want)
	}
}

// TestTests runs the tests of flows, without any module.
func TestTests(t *testing.T) {
	t.Parallel()
	all := blocks(t)
	for _, b := range all {
		name, ok := strings.CutPrefix(b.info, "hcl tests ")
		if !ok {
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, other := range all {
				if other.page == b.page && other.info == "hcl" && strings.Contains(other.text, "flow \""+name+"\" {") {
					write(t, dir, "flow.hcl", other.text)
				}
			}
			write(t, dir, "flow.test.hcl", b.text)
			suite, diags := flows.LoadTests(t.Context(), []string{dir}, flows.Options{Catalog: known})
			check(t, diags, "")
			for _, test := range suite.Tests {
				r, err := flowtest.Run(t.Context(), suite.Set, test, flowtest.Config{})
				if err != nil {
					t.Fatal(err)
				}
				check(t, r.Problems, "")
			}
			if formatted, _ := flows.Format([]byte(b.text), "flow.test.hcl"); string(formatted) != b.text {
				t.Errorf("not in canonical form, which is:\n%s", formatted)
			}
		})
	}
}

// TestGuide checks that guide.md shows all flow files of examples/guide unchanged,
// and that they load. A script of the command line runs them.
func TestGuide(t *testing.T) {
	t.Parallel()
	const root = "../examples/guide"
	shown := map[string]bool{}
	for _, b := range blocks(t) {
		name, ok := strings.CutPrefix(b.info, "hcl file ")
		if !ok {
			continue
		}
		shown[name] = true
		text := read(t, filepath.Join(root, name))
		if b.text != text {
			t.Errorf("%s: the page does not show the file %s as it is", b, name)
		}
		if formatted, _ := flows.Format([]byte(text), name); string(formatted) != text {
			t.Errorf("%s is not in canonical form, which is:\n%s", name, formatted)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*.hcl"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d flow files in %s: %v", len(files), root, err)
	}
	for _, file := range files {
		directory, name := filepath.Split(file)
		if step := filepath.Join(filepath.Base(directory), name); !shown[filepath.ToSlash(step)] {
			t.Errorf("no page shows %s", step)
		}
		if !strings.HasSuffix(name, ".test.hcl") {
			_, diags := flows.Load(t.Context(), []string{directory}, flows.Options{Catalog: known})
			check(t, diags, "")
		}
	}
}

// TestGuideCommands checks that the script of the guide runs each of its commands that
// needs no host.
func TestGuideCommands(t *testing.T) {
	t.Parallel()
	script := read(t, "../cmd/flowhost/testdata/script/guide.txtar")
	commands := 0
	for _, b := range blocks(t) {
		if b.page != "guide.md" || b.info != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "flowhost ") || strings.HasPrefix(line, "flowhost run ") || strings.Contains(line, " --data ") {
				continue
			}
			if commands++; !strings.Contains(script, line) {
				t.Errorf("%s: guide.txtar does not run %s", b, line)
			}
		}
	}
	if commands < 12 {
		t.Errorf("the guide has %d commands", commands)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// TestLinks follows the links from page to page of the repository.
func TestLinks(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "../*.md", "../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		for _, to := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			target, anchor, _ := strings.Cut(to[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, to[1])
			} else if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s: the link %s names no heading of the page", page, to[1])
			}
		}
	}
}

// TestFilesOfTheMainLine checks that the files in architecture.md exist.
func TestFilesOfTheMainLine(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(read(t, "architecture.md"), "\n## One run, file by file\n")
	list, _, _ = strings.Cut(list, "\n## ")
	files := regexp.MustCompile("`([a-z0-9_/]+\\.go)`").FindAllStringSubmatch(list, -1)
	if len(files) < 8 {
		t.Errorf("the list has %d files", len(files))
	}
	for _, file := range files {
		if _, err := os.Stat(filepath.Join("..", file[1])); err != nil {
			t.Errorf("architecture.md lists a file that does not exist: %v", err)
		}
	}
}

// anchors are the names that the headings of a page have in links.
func anchors(page string) []string {
	var names []string
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")
		names = append(names, regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(name, ""))
	}
	return names
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, b := range blocks(t) {
		if b.info != "hcl values" {
			continue
		}
		file, diags := hclsyntax.ParseConfig([]byte(b.text), "values.vars.hcl", hcl.InitialPos)
		if !diags.HasErrors() {
			_, diags = file.Body.JustAttributes()
		}
		check(t, diags, "")
	}
}

func TestBlocksAreOfAKnownKind(t *testing.T) {
	t.Parallel()
	kind := regexp.MustCompile(`^(hcl|hcl fragment|hcl tests [a-z_]+|hcl values|hcl settings|hcl wrong [a-z-]+|hcl file [a-z0-9_./-]+|json flow|json|go plugin|go test|go client|js|c|sh|mermaid)$`)
	for _, b := range blocks(t) {
		if !kind.MatchString(b.info) {
			t.Errorf("%s: %q is no kind of block", b, b.info)
		}
	}
}

// TestPrograms builds the pages' plugins as plugin build does, in a directory of their
// own, runs the tests beside them, and builds the clients.
func TestPrograms(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	for _, b := range blocks(t) {
		switch b.info {
		case "go plugin":
			dir = t.TempDir()
			write(t, dir, "main.go", b.text)
			command(t, dir, nil, "mod", "init", "example.com/plugin")
			command(t, dir, nil, "mod", "edit", "-require=github.com/flowhost/flowhost@v0.0.0", "-replace=github.com/flowhost/flowhost="+checkout)
			mode := "-buildmode=c-shared"
			if !strings.Contains(b.text, "flowhost/sdk") {
				mode = "-buildmode=exe"
			}
			command(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", mode, "-o", "plugin.wasm", ".")
		case "go test":
			write(t, dir, "main_test.go", b.text)
			command(t, dir, nil, "test", ".")
		case "go client":
			client := t.TempDir()
			write(t, client, "main.go", b.text)
			command(t, checkout, nil, "build", "-o", filepath.Join(client, "client"), filepath.Join(client, "main.go"))
		}
	}
	if dir == "" {
		t.Error("the pages hold no plugin")
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Env = dir, append(append(os.Environ(), "GOFLAGS=", "GOWORK=off"), env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestListsAreComplete checks that flow-language.md and connections.md name everything that the
// tables of package flows contain.
func TestListsAreComplete(t *testing.T) {
	t.Parallel()
	page := read(t, "flow-language.md") + read(t, "connections.md")
	for _, table := range []struct{ what, file, pattern string }{
		{"rule", "internal/diag/rules.go", `Rule = "([a-z-]+)"`},
		{"word", "language.go", `{Name: "([a-z_]+)"`},
		{"word", "testlanguage.go", `{Name: "([a-z_]+)"`},
		{"word", "internal/reachspec/tables.go", `{Name: "([a-z_]+)"`},
		{"function", "internal/funcs/table.go", `(?m)^\t+"([a-z0-9]+)": +(?:\w+\.\w+|\w+Func|guarded)\b`},
		{"file function", "functions_files.go", `all\["([a-z0-9]+)"\]`},
	} {
		names := regexp.MustCompile(table.pattern).FindAllStringSubmatch(read(t, filepath.Join("..", "flows", table.file)), -1)
		if len(names) < 4 {
			t.Errorf("%s holds %d names of the kind %s: the pattern does not fit", table.file, len(names), table.what)
		}
		for _, name := range names {
			if !regexp.MustCompile("`" + name[1] + "\\b").MatchString(page) {
				t.Errorf("the pages do not name the %s %q", table.what, name[1])
			}
		}
	}
}

// TestTablesAgree compares each table of arguments and of blocks in flow-language.md and
// connections.md with the tables that decode flow files: the same keywords, types, phases and
// defaults.
func TestTablesAgree(t *testing.T) {
	t.Parallel()
	page := read(t, "flow-language.md") + read(t, "connections.md")
	language := flows.Schema()
	for _, body := range slices.Concat(language.Bodies, language.TestBodies) {
		want := map[string]string{}
		for _, a := range body.Arguments {
			if !a.Later {
				want[a.Name] = argumentCells(a)
			}
		}
		if len(want) > 0 {
			agree(t, body.Name, tables(page, "argument"), want)
		}
		blocks := map[string]string{}
		for _, b := range body.Blocks {
			if !b.Later {
				blocks[b.Name] = ""
			}
		}
		if len(blocks) > 2 { // fewer need no table
			agree(t, body.Name, tables(page, "block"), blocks)
		}
	}
}

func argumentCells(a flows.Argument) string {
	kind, without := a.Type, a.Default
	if a.Bounds != "" {
		kind += ", " + a.Bounds
	}
	if a.Required {
		without = "required"
	}
	return strings.Join([]string{kind, a.Phase, without}, " | ")
}

// agree finds the table that has these keywords, or most of them, and compares it.
func agree(t *testing.T, body string, tables []map[string]string, want map[string]string) {
	t.Helper()
	var nearest map[string]string
	most := 0
	for _, table := range tables {
		common := -len(table)
		for word, cells := range want {
			if got, ok := table[word]; ok && got == cells {
				common += len(want) + 2
			} else if ok {
				common += len(want)
			}
		}
		if common > most {
			nearest, most = table, common
		}
	}
	for word, cells := range want {
		if got, ok := nearest[word]; !ok || got != cells {
			t.Errorf("%s: the page says of %s: %q, want %q", body, word, got, cells)
		}
	}
	for word := range nearest {
		if _, ok := want[word]; !ok {
			t.Errorf("%s: the page has the word %s, the language has not", body, word)
		}
	}
}

// tables are the page's tables whose first column has that title: its keywords, each
// with its type, phase and default.
func tables(page, title string) []map[string]string {
	var found []map[string]string
	inside := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == title:
			inside = true
			found = append(found, map[string]string{})
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside:
			rest := ""
			if title == "argument" && len(cells) > 3 {
				rest = strings.ReplaceAll(strings.Join(cells[1:4], " | "), "`", "")
			}
			for _, word := range regexp.MustCompile("`([a-z0-9_]+)").FindAllStringSubmatch(cells[0], -1) {
				found[len(found)-1][word[1]] = rest
			}
		}
	}
	return found
}

// TestFunctionsExist checks that each function in the page's tables exists.
func TestFunctionsExist(t *testing.T) {
	t.Parallel()
	page := read(t, "flow-language.md")
	_, section, _ := strings.Cut(page, "\n## Functions\n")
	section, _, _ = strings.Cut(section, "\nWhat differs")
	var file strings.Builder
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| \\w+ \\| `.*").FindAllString(section, -1) {
		for _, name := range regexp.MustCompile("`([a-z0-9]+)`").FindAllStringSubmatch(row, -1) {
			if slices.Contains(names, name[1]) {
				t.Errorf("%s is listed twice", name[1])
			}
			names = append(names, name[1])
			fmt.Fprintf(&file, "locals {\n  f_%s = %s()\n}\n", name[1], name[1])
		}
	}
	if len(names) < 90 {
		t.Errorf("%d functions were found in the page", len(names))
	}
	for _, d := range load(t, "flow.hcl", file.String()) {
		if strings.HasPrefix(d.Summary, "Unknown function") {
			t.Error(d.Detail)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
