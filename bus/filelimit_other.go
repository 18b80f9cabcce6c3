//go:build !unix

package bus

// maxFiles is how many files and connections the process may have open.
func maxFiles() int { return filesShare * maxConnections }
