package flows

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// parsedFiles are flow files that were parsed ahead, by their names in diagnostics.
type parsedFiles map[string]parsedFile

type parsedFile struct {
	file  *hcl.File
	diags hcl.Diagnostics
}

// parseAll parses the files of all modules side by side: that is half of what loading
// takes, and the other half goes from file to file.
func parseAll(sources []*source) parsedFiles {
	var files []sourceFile
	for _, s := range sources {
		files = append(files, s.files...)
	}
	parsed := make([]parsedFile, len(files))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(files)); i = next.Add(1) - 1 {
				parsed[i].file, parsed[i].diags = syntax.ParseFile(files[i].bytes, files[i].display)
			}
		})
	}
	workers.Wait()
	all := make(parsedFiles, len(files))
	for i, f := range files {
		all[f.display] = parsed[i]
	}
	return all
}

// file is one of them, or a file that was not parsed ahead.
func (p parsedFiles) file(f sourceFile) (*hcl.File, hcl.Diagnostics) {
	if ahead, ok := p[f.display]; ok {
		return ahead.file, ahead.diags
	}
	return syntax.ParseFile(f.bytes, f.display)
}
