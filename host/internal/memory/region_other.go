//go:build !linux

package memory

import (
	"context"
	"errors"
)

// reserve reports that memories are slices here.
func reserve(int) (backing, error) {
	return nil, errors.ErrUnsupported
}

// Flatten does nothing here: each image is a whole.
func (i *Image) Flatten(context.Context) error { return nil }
