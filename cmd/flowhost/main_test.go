package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/internal/testkit/gobuild"
)

// testRoot is the temporary directory of what the scripts share: guests,
// the examples with their plugins.
var testRoot string

func TestMain(m *testing.M) {
	// A host in a test, and flowhost as a script runs it, call this binary by its path.
	if code, asked := serve.CompileChild(os.Args[1:], os.Stdin, os.Stderr); asked {
		os.Exit(code)
	}
	testscript.Main(suite{m}, map[string]func(){"flowhost": main})
}

// suite builds all wasm once before the tests. It is not used when this binary
// plays flowhost for a script.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	root, err := os.MkdirTemp("", "flowhost-test-")
	if err == nil {
		defer os.RemoveAll(root)
		testRoot = root
		err = buildGuests(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := s.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// buildGuests builds <root>/guests/*.wasm, and copies the examples to
// <root>/examples with their plugins built from the sources in this tree.
func buildGuests(root string) error {
	guests, err := filepath.Glob("testdata/guests/*")
	if err != nil {
		return err
	}
	for _, dir := range guests {
		if err := gobuild.Guest(context.Background(), dir, filepath.Join(root, "guests", filepath.Base(dir)+".wasm")); err != nil {
			return err
		}
	}
	examples := filepath.Join(root, "examples")
	if err := os.CopyFS(examples, os.DirFS("../../examples")); err != nil {
		return err
	}
	plugins, err := filepath.Glob("../../examples/*/plugins/*/main.go")
	if err != nil {
		return err
	}
	for _, main := range plugins {
		dir := filepath.Dir(main)
		example := filepath.Base(filepath.Dir(filepath.Dir(dir)))
		if err := gobuild.Guest(context.Background(), dir, filepath.Join(examples, example, filepath.Base(dir)+".wasm")); err != nil {
			return err
		}
	}
	return nil
}
