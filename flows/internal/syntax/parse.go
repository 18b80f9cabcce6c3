package syntax

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// ParseFile parses a flow file or a file of values, in either syntax.
func ParseFile(src []byte, filename string) (*hcl.File, hcl.Diagnostics) {
	if strings.HasSuffix(filename, ".json") {
		if diags := checkJSON(src, filename); diags.HasErrors() {
			return nil, diags
		}
		return hcljson.Parse(src, filename)
	}
	if !withinBounds(src) {
		if diags := checkNative(src, filename, hclsyntax.LexConfig); diags.HasErrors() {
			return nil, diags
		}
	}
	return hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
}

// withinBounds spares most files a second lexing.
func withinBounds(src []byte) bool {
	depth, plain := plainDepth(src)
	return plain && depth <= MaxNesting && len(src) <= MaxSource && !couldBeLong(src)
}

// ParseExpression parses an expression in the native syntax.
func ParseExpression(src, filename string) (hcl.Expression, hcl.Diagnostics) {
	if diags := checkNative([]byte(src), filename, hclsyntax.LexExpression); diags.HasErrors() {
		return nil, diags
	}
	return hclsyntax.ParseExpression([]byte(src), filename, hcl.InitialPos)
}

// ParseTemplate parses a template, such as a string of the JSON syntax.
func ParseTemplate(src []byte, filename string) (hcl.Expression, hcl.Diagnostics) {
	if diags := checkNative(src, filename, hclsyntax.LexTemplate); diags.HasErrors() {
		return nil, diags
	}
	return hclsyntax.ParseTemplate(src, filename, hcl.InitialPos)
}
