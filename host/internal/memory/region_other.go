//go:build !linux

package memory

import "errors"

// reserve reports that memories are slices here.
func reserve(int) (backing, error) {
	return nil, errors.ErrUnsupported
}
