package run

import "github.com/flowhost/flowhost/run/access"

// Grants is what a call may touch besides its input: nothing, until it is
// granted. Each kind of grant has its own field, empty for none, so that a
// call without grants is the same bytes whatever kinds there are.
type Grants struct {
	Files []FileGrant `json:"files,omitempty"` // by place of the guest
	access.Grants
}

// IsZero reports whether nothing is granted, no directory either.
func (g *Grants) IsZero() bool { return len(g.Files) == 0 && g.Grants.IsZero() }

// FileGrant lets a guest see a directory of the machine that runs the call.
type FileGrant struct {
	Folder string `json:"folder"` // absolute; may be reached by links
	Path   string `json:"path"`   // of the granted directory, below Folder, with slashes; without links
	Guest  string `json:"guest"`  // where the guest sees it, "/data"
	Write  bool   `json:"write,omitempty"`
}
