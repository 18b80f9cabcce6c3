package siblings

import (
	"encoding/json"
	"regexp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// kinds are the blocks that other files can use, each with the root of references to it.
var kinds = map[string]string{"variable": "var", "plugin": "plugin", "limit": "limit", "flow": "flow", "connection": "connection", "secret": "secret"}

// defaults is the block without a name, which holds for all tasks.
var defaults = name{"defaults", ""}

// itemsOf are the blocks of a file that others can use, and each of its locals.
func itemsOf(body *hclsyntax.Body, file int) []*item {
	var all []*item
	for _, b := range body.Blocks {
		it := &item{file: file, at: b.Range(), needs: needsOf(b.Body)}
		switch root := kinds[b.Type]; {
		case b.Type == "locals":
			for _, a := range b.Body.Attributes {
				all = append(all, &item{file: file, at: a.SrcRange, declares: name{"local", a.Name}, needs: needsOf(a)})
			}
			continue
		case b.Type == "defaults":
			it.declares = defaults
		case root != "" && len(b.Labels) > 0:
			it.declares = name{root, b.Labels[0]}
		default:
			continue
		}
		all = append(all, it)
	}
	return all
}

// framesOf are the heads and ends of blocks of locals, which are chosen one by one.
func framesOf(body *hclsyntax.Body) []hcl.Range {
	var frames []hcl.Range
	for _, b := range body.Blocks {
		if b.Type == "locals" {
			frames = append(frames, hcl.RangeBetween(b.TypeRange, b.OpenBraceRange), b.CloseBraceRange)
		}
	}
	return frames
}

// localsWithin are the locals that flows declare for themselves.
func localsWithin(body *hclsyntax.Body) []name {
	var all []name
	for _, b := range body.Blocks {
		for _, inner := range b.Body.Blocks {
			if inner.Type == "locals" {
				for local := range inner.Body.Attributes {
					all = append(all, name{"local", local})
				}
			}
		}
	}
	return all
}

// needsOf are the names to which a part of a file refers. Flows are referred to by
// strings, too.
func needsOf(node hclsyntax.Node) []name {
	var all []name
	hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			if of, _, ok := syntax.Step(n.Traversal, 1); ok {
				all = needing(all, n.Traversal.RootName(), of)
			}
		case *hclsyntax.Attribute:
			if v, diags := n.Expr.Value(nil); (n.Name == "flow" || n.Name == "after") && !diags.HasErrors() && v.Type() == cty.String && !v.IsNull() {
				all = needing(all, "flow", v.AsString())
			}
		}
		return nil
	})
	return all
}

func needing(all []name, root, of string) []name {
	switch {
	case root == "flow" && of == "name": // of the flow itself
	case root == "var", root == "local", root == "plugin", root == "limit", root == "flow", root == "connection", root == "secret":
		all = append(all, name{root, of})
	}
	return all
}

// In the JSON syntax references are in strings of many forms.
var (
	referenceInJSON = regexp.MustCompile(`\b(var|local|plugin|limit|flow|connection|secret)\.([\pL_][\pL\pN_-]*)`)
	flowInJSON      = regexp.MustCompile(`"(?:flow|after)"\s*:\s*"([\w-]+)"`)
)

func needsOfJSON(src []byte) []name {
	var all []name
	for _, m := range referenceInJSON.FindAllSubmatch(src, -1) {
		all = needing(all, string(m[1]), string(m[2]))
	}
	for _, m := range flowInJSON.FindAllSubmatch(src, -1) {
		all = needing(all, "flow", string(m[1]))
	}
	return all
}

// namesInJSON are the names that a file in the JSON syntax declares.
func namesInJSON(src []byte) []name {
	var all []name
	for _, file := range objectsIn(src) {
		for block, content := range file {
			root := kinds[block]
			switch block {
			case "locals":
				root = "local"
			case "defaults":
				all = append(all, defaults)
			}
			if root == "" {
				continue
			}
			for _, object := range objectsIn(content) {
				for of := range object {
					all = append(all, name{root, of})
				}
			}
		}
	}
	return all
}

// objectsIn reads an object, or a list of them.
func objectsIn(src []byte) []map[string]json.RawMessage {
	var one map[string]json.RawMessage
	if json.Unmarshal(src, &one) == nil {
		return []map[string]json.RawMessage{one}
	}
	var list []map[string]json.RawMessage
	json.Unmarshal(src, &list) // neither holds no names
	return list
}
