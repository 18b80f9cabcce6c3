package memory

import (
	"sync"
	"sync/atomic"
)

// layer is what a memory maps of a file, from the same offset on.
type layer struct {
	extent
	file *file
}

// file is a sealed file in memory, which is mapped to read from. It is closed with the last
// image that needs it.
type file struct {
	descriptor int
	bytes      []byte // not to be read where nothing was written: that would take pages
	images     atomic.Int32
}

// flat is a file with all of a layered image, once there is one.
type flat struct {
	mu   sync.Mutex // of who makes it
	file atomic.Pointer[file]
}
