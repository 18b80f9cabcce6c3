// Package memory has a journal and a store that live as long as the process: for
// tests, and for runs that need not be kept.
package memory
