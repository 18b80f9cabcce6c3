package flows

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/run"
)

// TestTwins writes every example, every flow file of the documentation and many
// random ones in the JSON syntax: each twin must load to the same plan.
func TestTwins(t *testing.T) {
	t.Parallel()
	modules := exampleModules(t)
	if len(modules) < 10 {
		t.Fatalf("%d examples", len(modules))
	}
	for seed := range uint64(150) {
		modules["random "+randomName(seed)] = map[string][]byte{"f.hcl": []byte(randomFile(seed))}
	}
	for name, files := range modules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			twins := map[string][]byte{}
			for file, src := range files {
				if !isFlowFile(file) || strings.HasSuffix(file, ".json") {
					twins[file] = src
					continue
				}
				twins[file+".json"] = twin(t, src)
			}
			want, ok := planOf(t, files)
			if strings.HasPrefix(name, "random") && !ok {
				return
			}
			got, same := planOf(t, twins)
			if diff := cmp.Diff(want, got); diff != "" || !ok || !same {
				t.Errorf("%s", diff)
				for _, src := range twins {
					t.Logf("%s", src)
				}
			}
		})
	}
}

func randomName(seed uint64) string {
	return string(rune('a'+seed%26)) + strings.Repeat("i", int(seed/26))
}

// planOf loads a module as a run would, without its folder.
func planOf(t *testing.T, files map[string][]byte) ([]string, bool) {
	t.Helper()
	set, diags := Restore(t.Context(), &run.Definition{Files: files, Folder: "/f"}, Options{Vars: map[string]VarValue{"token": {Text: "x", Ambient: true}}})
	if diags.HasErrors() {
		return []string{text(set, diags)}, false
	}
	var lines []string
	for _, f := range set.Flows {
		lines = append(lines, plan(f)...)
	}
	for i, line := range lines {
		lines[i] = placeInText.ReplaceAllString(line, "a line")
	}
	return lines, true
}

var placeInText = regexp.MustCompile(`\w+\.hcl(\.json)?:\d+`)

// exampleModules are the modules of the examples' folders, of this package's, and
// of the pages of the documentation.
func exampleModules(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	all := map[string]map[string][]byte{}
	folders, err := filepath.Glob("../examples/*/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(folders, "testdata/examples/hello.hcl") {
		if !isFlowFile(filepath.Base(file)) {
			continue
		}
		files := map[string][]byte{}
		siblings, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
		for _, sibling := range siblings {
			if content, err := os.ReadFile(sibling); err == nil && !strings.HasSuffix(sibling, ".wasm") {
				files[filepath.Base(sibling)] = content
			}
		}
		all[filepath.Base(filepath.Dir(file))] = files
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range regexp.MustCompile("(?ms)^```hcl\n(.*?)^```").FindAllSubmatch(content, -1) {
			all[filepath.Base(page)+" "+randomName(uint64(i))] = map[string][]byte{"f.hcl": block[1]}
		}
	}
	return all
}

// twin writes a native flow file in the JSON syntax.
func twin(t *testing.T, src []byte) []byte {
	t.Helper()
	file, diags := hclsyntax.ParseConfig(src, "f.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		return []byte("{}") // of a random file, which is not looked at either
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(twinBody(file.Body.(*hclsyntax.Body), src))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func twinBody(body *hclsyntax.Body, src []byte) string {
	var members []string
	attributes := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		attributes = append(attributes, a)
	}
	slices.SortFunc(attributes, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	for _, a := range attributes {
		value := ""
		switch source := string(a.Expr.Range().SliceBytes(src)); {
		case a.Name == "type" && !strings.HasPrefix(source, `"`): // that of a connection is a string
			value = quoted(source)
		case a.Name == "after" && strings.HasPrefix(source, "flow."):
			value = quoted(source)
		case a.Name == "after" && strings.HasPrefix(source, "["):
			var items []string
			for _, item := range a.Expr.(*hclsyntax.TupleConsExpr).Exprs {
				items = append(items, quoted(string(item.Range().SliceBytes(src))))
			}
			value = "[" + strings.Join(items, ",") + "]"
		case a.Name == "limit" && strings.HasPrefix(source, "["):
			value = regexp.MustCompile(`limit\.\w+`).ReplaceAllString(source, `"$0"`)
		case a.Name == "limit" && strings.HasPrefix(source, "limit."):
			value = quoted(source)
		case a.Name == "plugin" && strings.HasPrefix(source, "plugin."):
			value = quoted(source)
		default:
			value = twinValue(a.Expr, src)
		}
		members = append(members, quoted(a.Name)+":"+value)
	}
	for blocks := body.Blocks; len(blocks) > 0; { // a kind is written again where others stand between
		n := 1
		for n < len(blocks) && blocks[n].Type == blocks[0].Type {
			n++
		}
		members = append(members, quoted(blocks[0].Type)+":"+twinBlocks(blocks[:n], src))
		blocks = blocks[n:]
	}
	return "{" + strings.Join(members, ",") + "}"
}

// twinBlocks writes blocks of one kind.
func twinBlocks(blocks []*hclsyntax.Block, src []byte) string {
	var all []string
	for _, b := range blocks {
		inside := twinBody(b.Body, src)
		for _, label := range slices.Backward(b.Labels) {
			inside = "{" + quoted(label) + ":" + inside + "}"
		}
		all = append(all, inside)
	}
	switch {
	case blocks[0].Type == "task": // the other way to write several
		for i := range all {
			all[i] = all[i][1 : len(all[i])-1]
		}
		return "{" + strings.Join(all, ",") + "}"
	case len(all) == 1:
		return all[0]
	}
	return "[" + strings.Join(all, ",") + "]"
}

// twinValue writes what JSON has a form for in that, and all else as a template.
func twinValue(e hclsyntax.Expression, src []byte) string {
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr:
		if template, ok := twinTemplate(e, src); ok {
			return quoted(template)
		}
	case *hclsyntax.LiteralValueExpr:
		if v, err := encodeJSON(e.Val); err == nil && e.Val.Type() != cty.String {
			return string(v)
		}
	case *hclsyntax.TupleConsExpr:
		var items []string
		for _, item := range e.Exprs {
			items = append(items, twinValue(item, src))
		}
		return "[" + strings.Join(items, ",") + "]"
	case *hclsyntax.ObjectConsExpr:
		var members []string
		for _, item := range e.Items {
			key := "${" + string(item.KeyExpr.Range().SliceBytes(src)) + "}"
			if v, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && v.Type() == cty.String {
				key = escaped(v.AsString())
			}
			members = append(members, quoted(key)+":"+twinValue(item.ValueExpr, src))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	return quoted("${" + string(e.Range().SliceBytes(src)) + "}")
}

// twinTemplate writes a template of texts and plain interpolations.
func twinTemplate(e *hclsyntax.TemplateExpr, src []byte) (string, bool) {
	var out strings.Builder
	written, values := 0, 0
	for _, part := range e.Parts {
		switch part := part.(type) {
		case *hclsyntax.LiteralValueExpr:
			if part.Val.Type() != cty.String {
				return "", false
			}
			written += len(part.Val.AsString())
			out.WriteString(escaped(part.Val.AsString()))
		case *hclsyntax.ConditionalExpr, *hclsyntax.TemplateJoinExpr:
			return "", false // a directive, whose range is not that of an expression
		default:
			values++
			out.WriteString("${" + string(part.Range().SliceBytes(src)) + "}")
		}
	}
	// Without a text around it, one value would keep its type.
	return out.String(), len(e.Parts) > 1 && (written > 0 || values > 1) || len(e.Parts) == 1 && e.IsStringLiteral() || len(e.Parts) == 0
}

// escaped is a text as a template that gives it.
func escaped(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}

func quoted(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSpace(out.String())
}
