package history

import (
	"go.etcd.io/bbolt"
)

// Indexed reports whether everything that was given is in the index.
func (h *Store) Indexed() bool { return h.idle() }

// size is that of the file's used part in bytes.
func (x *recordIndex) size() (n int64) {
	_ = x.view(func(tx *bbolt.Tx) error { n = tx.Size(); return nil })
	return n
}
