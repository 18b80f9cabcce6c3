//go:build !wasip1

package guest

import "context"

// askHost does nothing: there is no host.
func askHost(context.Context, string, []byte, []byte) (Reply, error) { return Reply{}, nil }

// askAlone does nothing, either.
func askAlone(string, []byte, []byte, bool) (Reply, error) { return Reply{}, nil }
