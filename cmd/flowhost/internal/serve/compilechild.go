package serve

import (
	"context"
	"io"
	"os"
	"runtime"

	"github.com/flowhost/flowhost/host"
)

// CompileCommand is this program as a host's child that compiles a module. On Linux it
// is the file that runs, even if that has been replaced since.
func CompileCommand() []string {
	program := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil // large modules are refused
		}
	}
	return []string{program, host.CompileArgument}
}

// CompileChild runs the program as such a child, if the arguments ask for it. It is
// not a command, because no person calls it.
func CompileChild(args []string, stdin io.Reader, stderr io.Writer) (code int, asked bool) {
	if len(args) != 1 || args[0] != host.CompileArgument {
		return 0, false
	}
	return host.CompileChild(context.Background(), stdin, stderr), true
}
