// Package storetest holds the tests that every store of an engine must pass,
// whatever it keeps objects in.
package storetest
