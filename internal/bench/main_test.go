package main

import (
	"context"
	"os"
	"testing"

	"github.com/flowhost/flowhost/host"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == host.CompileArgument {
		os.Exit(host.CompileChild(context.Background(), os.Stdin, os.Stderr))
	}
	os.Exit(m.Run())
}

// compileCommand is this program as a child that compiles a module.
func compileCommand() []string { return []string{os.Args[0], host.CompileArgument} }
