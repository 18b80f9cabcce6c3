package known

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/flowhost/flowhost/host/internal/compile"
	"github.com/flowhost/flowhost/run"
)

// Modules is what is known of modules. It is safe for concurrent use.
type Modules struct {
	Now func() time.Time // the present; default: the machine's clock

	store *compile.Store // nil: memory instead
	rules string
	seen  seen

	mu     sync.Mutex
	memory map[string][]byte
	held   int // bytes in memory
}

// maxHeld bounds what a Modules without a store keeps.
const maxHeld = 16 << 20

// Facts is what is known of a module that has passed all checks but compiling.
type Facts struct {
	Size      int64  // bytes
	Code      bool   // the code of its functions is valid
	Within    string // limits of a host within which a call has stated the signature; "" when no call was needed
	Signature run.Signature
}

// New makes a Modules. Only what was found under the same rules and by the same program is
// known.
func New(store *compile.Store, rules string) *Modules {
	m := &Modules{Now: time.Now, store: store, rules: rules + program(), memory: map[string][]byte{}}
	m.seen.modules = m
	return m
}

// program tells builds of this program apart that have the same version: while it is
// developed, checks change.
func program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(" ", info.Size(), " ", info.ModTime().UnixNano())
}

// Facts returns what is known of the module of that digest.
func (m *Modules) Facts(digest string) (Facts, bool) {
	var f Facts
	stored := m.load("facts " + digest)
	known := stored != nil && json.Unmarshal(stored, &f) == nil && f.Signature.Digest == digest
	return f, known
}

// Keep stores what was found of a module.
func (m *Modules) Keep(f *Facts) {
	m.keep("facts "+f.Signature.Digest, f)
}

// Compiled reports whether native code of the module was left in the cache. It may have
// been removed since.
func (m *Modules) Compiled(digest string) bool { return m.load("compiled "+digest) != nil }

// KeepCompiled records that native code of the module is in the cache.
func (m *Modules) KeepCompiled(digest string) {
	if !m.Compiled(digest) {
		m.keep("compiled "+digest, true)
	}
}

func (m *Modules) load(key string) []byte {
	if m.store != nil {
		return m.store.Load(compile.Known, m.rules+key)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory[key]
}

func (m *Modules) keep(key string, value any) {
	if m.store != nil {
		m.store.Store(compile.Known, m.rules+key, func(out []byte) ([]byte, error) {
			text, err := json.Marshal(value)
			return append(out, text...), err
		})
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held += len(key) + len(text); m.held > maxHeld {
		m.memory, m.held = map[string][]byte{}, len(key)+len(text)
	}
	m.memory[key] = text
}
