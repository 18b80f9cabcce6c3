package syntax

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
)

// Ahead are files that were parsed ahead, by name.
type Ahead map[string]parsed

type parsed struct {
	file  *hcl.File
	diags hcl.Diagnostics
}

// ParseAhead parses files, given by name, side by side: that is half of what loading flow
// files takes, and the other half goes from file to file.
func ParseAhead(files map[string][]byte) Ahead {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	results := make([]parsed, len(names))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				results[i].file, results[i].diags = ParseFile(files[names[i]], names[i])
			}
		})
	}
	workers.Wait()
	all := make(Ahead, len(names))
	for i, name := range names {
		all[name] = results[i]
	}
	return all
}

// File is one of them, or a file that was not parsed ahead.
func (a Ahead) File(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	if p, ok := a[name]; ok {
		return p.file, p.diags
	}
	return ParseFile(src, name)
}
