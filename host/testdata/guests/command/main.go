// Command command is a program of the wasi ABI. Its input, a JSON string, is
// what it does and a number.
package main

import (
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	what, digits, _ := strings.Cut(strings.Trim(string(input), `"`), " ")
	n, _ := strconv.Atoi(digits)
	switch what {
	case "echo":
		os.Stdout.WriteString(`{"stdin":` + string(input) + `,"args":["` + strings.Join(os.Args, `","`) +
			`"],"env":` + strconv.Itoa(len(os.Environ())) + "}\n")
	case "exit":
		os.Stderr.WriteString("first\nlast words\n")
		os.Exit(n)
	case "panic":
		panic("boom")
	case "text":
		os.Stdout.WriteString("hello\n")
	case "write":
		os.Stdout.WriteString(`"` + strings.Repeat("x", n-2) + `"`)
	case "flood":
		for {
			os.Stdout.WriteString(strings.Repeat("x", 1<<10))
		}
	case "hoard":
		var hoard [][]byte
		for range n {
			hoard = append(hoard, make([]byte, 1<<20))
		}
		os.Stdout.WriteString(strconv.Itoa(len(hoard)))
	}
}
