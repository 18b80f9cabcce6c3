// Package journaltest holds the tests that every journal of an engine must pass,
// whatever it stores commits in.
package journaltest
