// Package memory has a journal and a store that live as long as the process: for
// tests, and for runs that nobody asked to keep.
package memory
