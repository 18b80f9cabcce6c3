package wasi

import (
	"cmp"
	"io"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Process is what one call of a guest sees of WASI. It belongs to the goroutine
// of the call and must not be copied once the guest runs. The zero value denies
// everything.
type Process struct {
	Args []string // without NUL bytes
	Env  []string // "KEY=value", given in this order; without NUL bytes

	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // nil: discarded

	// Random is where random numbers come from. Nil: random_get answers ENOSYS,
	// as numbers that are not random are worse than none.
	Random io.Reader

	Walltime func() (sec int64, nsec int32) // since the Unix epoch; nil: there is no such clock
	Nanotime func() int64                   // monotonic; nil: there is no such clock

	// Resolution is the reported resolution of both clocks, in nanoseconds. Default: 1000.
	Resolution int64

	// Sleep waits. It may panic to unwind the guest. Nil: sleeping takes no time.
	Sleep func(ns int64)

	// Await waits until a file that is [Pending] may have become ready, or for so many
	// nanoseconds; negative: without a bound. It returns how many have passed on the clocks.
	// It may panic to unwind the guest. Nil: no file is ever pending.
	Await func(ns int64) int64

	// Pause is called between the steps of long transfers. It may panic to unwind
	// the guest. Nil: nothing to check.
	Pause func()

	// FS is open to the guest as the directory "/", descriptor 3. It sees paths
	// that are clean and begin with a slash. It alone decides where symbolic links
	// lead. Nil: there are no files.
	FS sys.FS

	// MaxFiles is how many files and directories the guest can have open beyond
	// stdio and "/". Default: 64; negative: none.
	MaxFiles int

	table table
}

// Pending is implemented by files that are not always ready to be read.
type Pending interface{ Pending() bool }

// Defaults of Process.
const (
	defaultResolution = 1000
	defaultMaxFiles   = 64
)

// Close closes what the guest left open, and everything else: all descriptors
// are bad ones from then on. It reports how many files and directories were left
// open, stdio and "/" not counted.
func (p *Process) Close() (open int) {
	t := &p.table
	open, t.made = t.opened, true
	for i := range t.slots {
		_ = t.slots[i].close() // there is no caller to report it to
	}
	t.slots, t.opened = nil, 0
	return open
}

func (p *Process) maxFiles() int { return max(cmp.Or(p.MaxFiles, defaultMaxFiles), 0) }

func (p *Process) pause() {
	if p.Pause != nil {
		p.Pause()
	}
}
