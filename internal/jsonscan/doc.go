// Package jsonscan checks JSON and leaves out its white space, at a gigabyte a second and
// more. It accepts exactly the JSON that encoding/json does, as far as that is within the bounds of
// what the host takes from outside. It decodes nothing but the members of a small object.
//
// To read it: check.go, text.go and number.go (the parts of a value), compact.go, members.go.
package jsonscan
