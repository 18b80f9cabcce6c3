package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
)

// CompileArgument is what a program passes to itself as its only argument in
// [Config].CompileCommand, and by which it knows that it is to call [CompileChild].
const CompileArgument = "compile-module"

// compileJob is what a child reads first, as a line of JSON. The module follows.
type compileJob struct {
	Dir    string // of the cache
	Size   int    // bytes of the module
	CPU    int64  // seconds
	Memory int64  // bytes of addresses
	Code   int64  // bytes of the file that it may write
}

// Exit codes of a child. Others are the Go runtime's, when it ends for a limit.
const (
	childDone    = 0
	childBroken  = 3
	childRefused = 4 // wazero refuses the module, for the reason on stderr
)

// CompileChild is the main function of the process that compiles one module,
// under the limits that its parent states. It reads a job from stdin, leaves
// native code in the cache and gives the process's exit code. It ends the
// process when stdin ends early, as it does when the parent ends.
func CompileChild(ctx context.Context, stdin io.Reader, stderr io.Writer) int {
	in := bufio.NewReader(stdin)
	var job compileJob
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &job)
	}
	if err == nil {
		err = limitProcess(job)
	}
	binary := make([]byte, max(job.Size, 0))
	if err == nil {
		_, err = io.ReadFull(in, binary)
	}
	if err != nil {
		fmt.Fprintf(stderr, "reading what to compile: %v\n", err)
		return childBroken
	}
	go func() {
		in.ReadByte() // nothing comes: the parent holds the other end until this process ends
		os.Exit(childBroken)
	}()
	debug.SetMemoryLimit(job.Memory / 4 * 3)
	cache, err := wazero.NewCompilationCacheWithDir(job.Dir)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return childBroken
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, runtimeSettings(Compiler).WithCompilationCache(cache))
	if _, err := runtime.CompileModule(ctx, binary); err != nil {
		fmt.Fprintln(stderr, err)
		return childRefused
	}
	return childDone // nothing is closed: the process ends
}
