package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Package is the Go files of one directory.
type Package struct {
	Folder string // from the module's root, with slashes; "." is the root
	Files  []*File
}

// testOnly reports whether there is nothing but tests.
func (p *Package) testOnly() bool {
	return !slices.ContainsFunc(p.Files, func(f *File) bool { return !f.Test })
}

// File is one parsed Go file.
type File struct {
	Path    string // from the module's root, with slashes
	Test    bool   // the name ends in _test.go
	Syntax  *ast.File
	Imports []Import

	positions *token.FileSet
}

// Import is one import of a file.
type Import struct {
	Path string
	Line int
}

// Read parses all packages of the module whose root directory is given. It leaves
// out what the go tool leaves out, testdata and directories that start with a dot or
// an underscore, and the modules that lie inside this one.
func Read(root fs.FS) ([]*Package, error) {
	var packages []*Package
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if leftOut(root, name) {
			return fs.SkipDir
		}
		p, err := readPackage(root, name)
		if p != nil {
			packages = append(packages, p)
		}
		return err
	})
	return packages, err
}

func leftOut(root fs.FS, folder string) bool {
	if folder == "." {
		return false
	}
	base := path.Base(folder)
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	return err == nil
}

// readPackage gives nil for a directory without Go files.
func readPackage(root fs.FS, folder string) (*Package, error) {
	names, err := fs.Glob(root, path.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	p := &Package{Folder: folder}
	for _, name := range names {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		f, err := parseFile(name, source)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, f)
	}
	return p, nil
}

func parseFile(name string, source []byte) (*File, error) {
	f := &File{Path: name, Test: strings.HasSuffix(name, "_test.go"), positions: token.NewFileSet()}
	syntax, err := parser.ParseFile(f.positions, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("cannot read the imports: %w", err)
	}
	f.Syntax = syntax
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, f.line(spec), err)
		}
		f.Imports = append(f.Imports, Import{Path: imported, Line: f.line(spec)})
	}
	return f, nil
}

func (f *File) line(n ast.Node) int { return f.positions.Position(n.Pos()).Line }

// within reports whether directory is the parent or lies below it.
func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}
