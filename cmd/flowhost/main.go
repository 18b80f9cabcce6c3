package main

import (
	"context"
	"io"
	"os"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
)

func main() {
	os.Exit(realMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// realMain is the program: its arguments and streams in, its exit code out.
func realMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if code, asked := serve.CompileChild(args, stdin, stderr); asked {
		return code
	}
	a := cli.NewApp(stdin, stdout, stderr)
	root := rootCommand(a)
	root.SetArgs(args)
	return a.Report(root.ExecuteContext(context.Background()))
}
