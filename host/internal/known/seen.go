package known

import (
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// maxSeen is how many files a list of seen files has at most.
const maxSeen = 1024

// seen is the list of files whose content was read, the one read last at its end.
// Processes that write it at the same time lose entries of each other.
type seen struct {
	modules *Modules
	mu      sync.Mutex
	read    bool // files is the stored list
	files   []seenFile
}

type seenFile struct {
	Path     string
	Identity string // of the file and of the manifest beside it
	Digest   string
}

// settled is how long a file must not have changed before its identity stands for its
// content: two changes within one unit of a file system's clock, 2 s at most, leave the
// same identity.
const settled = 3 * time.Second

// Identity is that of a module's file and of the manifest beside it at some moment.
type Identity struct {
	text    string // "" where the system gives none
	changed time.Time
}

// Identify returns the identity of the files at two absolute paths, of which the second
// one need not exist.
func Identify(path, beside string) Identity {
	first, changed, ok := identify(path)
	if !ok {
		return Identity{}
	}
	second, too, ok := identify(beside)
	if !ok {
		return Identity{}
	}
	if too.After(changed) {
		changed = too
	}
	return Identity{first + "; " + second, changed}
}

// Digest returns the digest of the module at an absolute path, if the file of that
// identity was read before.
func (m *Modules) Digest(path string, now Identity) (string, bool) {
	s := &m.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restore()
	i := slices.IndexFunc(s.files, func(f seenFile) bool { return f.Path == path })
	if i < 0 || now.text == "" || s.files[i].Identity != now.text {
		return "", false
	}
	return s.files[i].Digest, true
}

// KeepDigest records the digest of the module at an absolute path, whose identity was
// before when reading it began, and is now.
func (m *Modules) KeepDigest(path, digest string, before, now Identity) {
	if before.text == "" || before.text != now.text || m.Now().Sub(before.changed) < settled {
		return
	}
	s := &m.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restore()
	s.files = slices.DeleteFunc(s.files, func(f seenFile) bool { return f.Path == path })
	s.files = append(s.files, seenFile{path, now.text, digest})
	s.files = slices.Delete(s.files, 0, max(len(s.files)-maxSeen, 0))
	m.keep("seen", s.files)
}

func (s *seen) restore() {
	if s.read {
		return
	}
	s.read = true
	if json.Unmarshal(s.modules.load("seen"), &s.files) != nil {
		s.files = nil
	}
}
