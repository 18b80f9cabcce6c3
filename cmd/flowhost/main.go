package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
)

func main() {
	os.Exit(realMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// gcOfCommands is the heap growth between two collections unless GOGC is set, or a host
// serves. Commands end soon: with Go's 100, loading 1 000 flows takes 1.5 times as much of
// the processors, and with 400 its heap grows by a third.
const gcOfCommands = 400

// realMain is the program: its arguments and streams in, its exit code out.
func realMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if code, asked := serve.CompileChild(args, stdin, stderr); asked {
		return code
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcOfCommands)
	}
	a := cli.NewApp(stdin, stdout, stderr)
	root := rootCommand(a)
	root.SetArgs(args)
	return a.Report(root.ExecuteContext(context.Background()))
}
