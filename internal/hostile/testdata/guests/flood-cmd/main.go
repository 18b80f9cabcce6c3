// Command flood-cmd writes what its input asks for, without an end: to its output
// or to its log.
package main

import (
	"bytes"
	"encoding/json"
	"os"
)

func main() {
	var in struct {
		Log   bool `json:"log"`
		Lines bool `json:"lines"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		os.Exit(1)
	}
	text := bytes.Repeat([]byte("x"), 64<<10)
	if in.Lines {
		text = bytes.Repeat([]byte("x\n"), 32<<10)
	}
	to := os.Stdout
	if in.Log {
		to = os.Stderr
	}
	for {
		to.Write(text) // a host that takes no more ends the call
	}
}
