// Command text-cmd is a command plugin that answers with text instead of JSON,
// unless it is asked for JSON on stdin.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(75)
	}
	if string(in) == `"json"` {
		fmt.Println(`{"ok":true}`)
		return
	}
	fmt.Fprintln(os.Stderr, "about to answer")
	fmt.Println("good morning")
}
