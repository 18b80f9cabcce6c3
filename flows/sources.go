package flows

import (
	"path/filepath"
	"slices"
)

// IsSource reports whether a file of that name is read with the directory that it
// lies in: a flow file, or one that gives values for variables.
func IsSource(name string) bool { return isFlowFile(name) || isAutomatic(name) }

// Sources are the paths of the files that the flows of a loaded set were made of:
// flow files, files that functions have read, and the modules of plugins. Paths
// are relative where those given to [Load] were.
func (s *Set) Sources() []string {
	var all []string
	for _, f := range s.Flows {
		folder := filepath.Dir(f.Range.Filename)
		add := func(name string) {
			if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
				name = filepath.Join(folder, name)
			}
			all = append(all, name)
		}
		for name := range f.Definition.Files {
			add(name)
		}
		for source := range f.Definition.Plugins {
			add(source)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
