//go:build !unix

package guestfs

// nonblock is not needed where folders hold no pipes.
const nonblock = 0
