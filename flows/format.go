package flows

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// Format gives a flow file its canonical layout. Files in the JSON syntax come
// back as they are. With a syntax error the source comes back unchanged beside
// the diagnostics.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	var r diag.Report
	_, diags := syntax.ParseFile(src, filename)
	if r.Take(RuleSyntax, diags) || strings.HasSuffix(filename, ".json") {
		return src, r.Sorted()
	}
	return hclwrite.Format(src), nil
}
