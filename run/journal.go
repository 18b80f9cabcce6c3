package run

import "errors"

// ErrFenced is the error of an append whose expected revision is not the journal's last
// one, because another process writes the journal. Nothing was recorded.
var ErrFenced = errors.New("another writer has appended to the journal")

// ErrDamaged is wrapped by errors about stored bytes that differ from the written ones.
var ErrDamaged = errors.New("damaged")
