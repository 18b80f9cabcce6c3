// Package gobuild builds plugins that are written in Go, with the go command.
package gobuild
