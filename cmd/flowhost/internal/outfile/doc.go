// Package outfile writes files that a flag names, without harm: it replaces a file in
// one step, keeps its permissions and owner, and refuses to overwrite a file of
// another kind.
package outfile
