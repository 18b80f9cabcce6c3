// Package syntax reads the two syntaxes of HCL within bounds, and looks at expressions
// without evaluating them.
//
// The parsers of hcl recurse, and a stack that is used up ends the process; some of what
// they do takes the square of the length. So the tokens are counted before anything is
// parsed (limits.go; plain.go spares most files that), and what is too large, too deep or too long becomes a diagnostic.
package syntax
