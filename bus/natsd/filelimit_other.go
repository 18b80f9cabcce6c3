//go:build !unix

package natsd

// maxFiles is how many files and connections the process may have open.
func maxFiles() int { return filesShare * maxConnections }
