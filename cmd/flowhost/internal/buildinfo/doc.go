// Package buildinfo states what the program was built from.
package buildinfo
