package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Plain is the message of an error in which the errors of Go's own packages are in the
// words of this program: users neither know lstat nor strconv.ParseInt.
func Plain(err error) string {
	text := err.Error()
	each(err, func(err error) {
		if words := plainWords(err); words != "" {
			text = strings.ReplaceAll(text, err.Error(), words)
		}
	})
	return text
}

// each visits an error and all errors in it, the outer ones first.
func each(err error, visit func(error)) {
	if err == nil {
		return
	}
	visit(err)
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		each(err.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			each(one, visit)
		}
	}
}

// plainWords are those for one error, empty for one that is not of Go's own packages.
func plainWords(err error) string {
	switch err := err.(type) {
	case *fs.PathError:
		if errors.Is(err, fs.ErrNotExist) {
			return "there is no file or directory " + err.Path
		}
		return fmt.Sprintf("%s: %s", err.Path, err.Err)
	case *os.LinkError:
		return fmt.Sprintf("%s to %s: %s", err.Old, err.New, err.Err)
	case *os.SyscallError:
		return err.Err.Error()
	case *net.OpError:
		inner := plainWords(err.Err)
		if inner == "" {
			inner = err.Err.Error()
		}
		if err.Addr != nil {
			return err.Addr.String() + ": " + inner
		}
		return inner
	case *net.DNSError:
		if err.IsNotFound {
			return fmt.Sprintf("there is no host %q", err.Name)
		}
		return fmt.Sprintf("the name %q cannot be resolved: %s", err.Name, err.Err)
	case *net.AddrError:
		if err.Err == "missing port in address" {
			return fmt.Sprintf("%q has no port; write HOST:PORT, such as 127.0.0.1:4222", err.Addr)
		}
	case *strconv.NumError:
		return fmt.Sprintf("%q is not a number", err.Num)
	case *syntax.Error:
		return fmt.Sprintf("not a regular expression: %s: %s", err.Code, err.Expr)
	}
	return ""
}

// expected are the values of flags by their types, with an example.
var expected = map[string]string{
	"duration": "a duration with a unit is expected, such as 500ms, 30s, 5m or 1h30m",
	"int":      "an integer is expected, such as 10",
	"bool":     "true or false is expected",
}

// FlagError is a usage error for a flag that cannot be parsed.
func FlagError(cmd *cobra.Command, err error) error {
	invalid := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &invalid) {
		return Usage(cmd, "%w", err)
	}
	flag := invalid.GetFlag()
	if want := expected[flag.Value.Type()]; want != "" {
		return Usage(cmd, "--%s %q: %s", flag.Name, invalid.GetValue(), want)
	}
	return Usage(cmd, "--%s: %w", flag.Name, invalid.Unwrap())
}
