//go:build !unix

package guestfs

// nonblock is not needed where directories hold no pipes.
const nonblock = 0
