package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp/syntax"
	"strconv"
	"syscall"
	"testing"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	_, missing := os.Stat("nothing")
	_, number := strconv.Atoi("x")
	pattern := &syntax.Error{Code: syntax.ErrMissingParen, Expr: "("}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("as it is"), "as it is"},
		{missing, "there is no file or directory nothing"},
		{fmt.Errorf("settings: %w", missing), "settings: there is no file or directory nothing"},
		{errors.Join(errors.New("first"), missing), "first\nthere is no file or directory nothing"},
		{&fs.PathError{Op: "lstat", Path: "a", Err: fs.ErrPermission}, "a: permission denied"},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EXDEV}, "a to b: invalid cross-device link"},
		{number, `"x" is not a number`},
		{pattern, "not a regular expression: missing closing ): ("},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "a.invalid", Err: "no such host", IsNotFound: true}}, `there is no host "a.invalid"`},
		{&net.DNSError{Name: "a.invalid", Err: "server misbehaving"}, `the name "a.invalid" cannot be resolved: server misbehaving`},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}, "127.0.0.1:1: connection refused"},
		{&net.AddrError{Err: "missing port in address", Addr: "foo"}, `"foo" has no port; write HOST:PORT, such as 127.0.0.1:4222`},
	} {
		if got := Plain(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.err, got, c.want)
		}
	}
}
