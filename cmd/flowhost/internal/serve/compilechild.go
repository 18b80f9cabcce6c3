package serve

import (
	"context"
	"io"
	"os"
	"runtime"

	"github.com/flowhost/flowhost/host"
)

// CompileCommand is this program as the child of a host that compiles a module. On
// Linux that is the very file that runs, also when it has been replaced since.
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

// CompileChild is the program as such a child. It is no command of a person's, so
// it is not among them. It reports whether the arguments ask for it.
func CompileChild(args []string, stdin io.Reader, stderr io.Writer) (code int, asked bool) {
	if len(args) != 1 || args[0] != host.CompileArgument {
		return 0, false
	}
	return host.CompileChild(context.Background(), stdin, stderr), true
}
