package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const guestFolder = "../../host/testdata/guests"

// keptGuest is a guest that lies beside its source.
func keptGuest(b *testing.B, name string) []byte {
	b.Helper()
	binary, err := os.ReadFile(filepath.Join(guestFolder, name+".wasm"))
	if err != nil {
		b.Fatal(err)
	}
	return binary
}

// goGuest builds the Go guest, with the given build tag.
func goGuest(b *testing.B, tag string) []byte {
	b.Helper()
	return buildGuest(b, tag, "./host/testdata/guests/go")
}

// buildGuest builds a Go guest of this repository, with the given build tag.
func buildGuest(b *testing.B, tag, source string) []byte {
	b.Helper()
	path := filepath.Join(b.TempDir(), "go.wasm")
	cmd := exec.Command("go", "build", "-tags", tag, "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared", "-o", path, source)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return binary
}

// orderOf is a JSON document as encoding/json writes it. One item takes 40 bytes.
func orderOf(items int) []byte {
	var list []string
	for i := range items {
		list = append(list, fmt.Sprintf(`{"sku":"KB-%d","quantity":%d,"price":12.5}`, i, i%7+1))
	}
	return []byte(`{"id":"o-1001","customer":"ada","items":[` + strings.Join(list, ",") + `],"total":154.9}`)
}
