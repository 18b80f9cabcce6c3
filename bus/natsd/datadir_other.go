//go:build !unix

package natsd

import "log/slog"

// Permission bits mean nothing on this system, and no server keeps its data here.
func writableDir(string) error { return nil }

func othersOut(string) error { return nil }

func reportSharing(string, *slog.Logger) {}
