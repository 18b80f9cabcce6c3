package compile

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

// job is the first line, in JSON, that a child reads. The module follows.
type job struct {
	Dir    string // of the cache
	Size   int    // bytes of the module
	CPU    int64  // seconds
	Memory int64  // bytes of addresses
	Code   int64  // bytes of the file that it may write
}

// Exit codes of a child. Any other code comes from the Go runtime, after a limit.
const (
	childDone    = 0
	childBroken  = 3
	childRefused = 4 // wazero refuses the module, for the reason on stderr
)

// Child is the main function of the process that compiles one module, under the limits
// that its parent sets. It reads a job from stdin, leaves native code in the cache and
// returns the process's exit code. It ends the process when stdin ends early, as it does
// when the parent ends.
func Child(ctx context.Context, stdin io.Reader, stderr io.Writer) int {
	in := bufio.NewReader(stdin)
	var work job
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &work)
	}
	if err == nil {
		err = limitProcess(work)
	}
	binary := make([]byte, max(work.Size, 0))
	if err == nil {
		_, err = io.ReadFull(in, binary)
	}
	if err != nil {
		fmt.Fprintf(stderr, "reading the job: %v\n", err)
		return childBroken
	}
	go func() {
		in.ReadByte() // no byte follows: the parent keeps its end open until this process ends
		os.Exit(childBroken)
	}()
	debug.SetMemoryLimit(work.Memory / 4 * 3)
	cache, err := wazero.NewCompilationCacheWithDir(work.Dir)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return childBroken
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, Settings().WithCompilationCache(cache))
	if _, err := runtime.CompileModule(ctx, binary); err != nil {
		fmt.Fprintln(stderr, err)
		if IsStorageFault(err) {
			return childBroken
		}
		return childRefused
	}
	return childDone // nothing to close: the process ends
}
