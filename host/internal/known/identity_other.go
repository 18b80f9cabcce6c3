//go:build !linux

package known

import "time"

// identify gives nothing: every file is read.
func identify(string) (identity string, changed time.Time, ok bool) { return "", time.Time{}, false }
