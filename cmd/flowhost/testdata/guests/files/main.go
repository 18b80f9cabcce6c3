// Command files is a plugin that works with the folders that it is granted.
package main

import (
	"os"

	"github.com/flowhost/flowhost/sdk"
)

func main() {}

func init() {
	sdk.Function("read", read)
	sdk.Function("write", write)
	sdk.Function("list", list)
}

type file struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
}

func read(_ sdk.Context, f file) (string, error) {
	text, err := os.ReadFile(f.Path)
	return string(text), permanent(err)
}

func write(_ sdk.Context, f file) (int, error) {
	return len(f.Text), permanent(os.WriteFile(f.Path, []byte(f.Text), 0o644))
}

func list(_ sdk.Context, f file) ([]string, error) {
	entries, err := os.ReadDir(f.Path)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, permanent(err)
}

// permanent is for errors that another attempt would meet again.
func permanent(err error) error {
	if err == nil {
		return nil
	}
	return sdk.Permanent(err)
}
