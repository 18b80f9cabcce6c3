// Package lang describes a language of HCL blocks by tables, and reads blocks by them.
//
// A [Schema] lists what may be written in one kind of block: its arguments, each with the
// [Kind] of its value and the [Phase] in which it is evaluated, and its blocks. [Decode]
// sorts out a body by its schema and reports what does not belong there, with the nearest
// name and with what is written in the other form. The tables of flow files are in package
// flows (language.go).
package lang
