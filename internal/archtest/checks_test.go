package archtest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/internal/archtest"
)

// read parses a module made of the given files.
func read(t *testing.T, files map[string]string) []*archtest.Package {
	t.Helper()
	root := fstest.MapFS{}
	for name, source := range files {
		root[name] = &fstest.MapFile{Data: []byte(source)}
	}
	packages, err := archtest.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// importing is a file that imports the given paths.
func importing(paths ...string) string {
	return "// Package p is a test.\npackage p\n\nimport _ \"" + strings.Join(paths, "\"\nimport _ \"") + "\"\n"
}

func TestImports(t *testing.T) {
	t.Parallel()
	const own = archtest.Module + "/"
	tests := []struct {
		name, file, imports string
		want                string // a part of the violation; "" when there is none
	}{
		{"down", "engine/a.go", own + "flows", ""},
		{"down two layers", "engine/a.go", own + "run", ""},
		{"up", "run/a.go", own + "engine", "run/a.go:4: run must not import " + own + "engine: run is the vocabulary"},
		{"same layer", "host/a.go", own + "flows", "host must not import"},
		{"engine to host", "engine/a.go", own + "host", "through its own seams"},
		{"inside a folder", "sdk/sdktest/a.go", own + "sdk/internal/guest", ""},
		{"part of a folder", "host/a.go", own + "sdk/abi", ""},
		{"the rest of that folder", "host/a.go", own + "sdk", "host must not import"},
		{"leaf imports its parent", "sdk/abi/a.go", own + "sdk", "numbers and names only"},
		{"test kit in the program", "cmd/flowhost/a.go", own + "internal/testkit/journaltest", "only tests may"},
		{"test kit in a test", "engine/a_test.go", own + "internal/testkit/journaltest", ""},
		{"schedsim in the program", "cmd/flowhost/a.go", own + "internal/schedsim", ""},
		{"schedsim in the engine", "engine/a.go", own + "internal/schedsim", "engine must not import"},
		{"engine in schedsim", "internal/schedsim/a.go", own + "engine", "nothing that fires or runs"},
		{"flowsim in the program", "cmd/flowhost/a.go", own + "internal/flowsim", ""},
		{"the host in flowsim", "internal/flowsim/a.go", own + "host", "its caller passes"},
		{"engine in a test of schedsim", "internal/schedsim/a_test.go", own + "engine", ""},
		{"guest imports the host", "examples/hello/plugins/greet/a.go", own + "run", "are guests"},
		{"guest imports the SDK", "examples/hello/plugins/greet/a.go", own + "sdk", ""},
		{"standard library", "dag/a.go", "slices", ""},
		{"outside in L0", "dag/a.go", "golang.org/x/sync/errgroup", "only the standard library"},
		{"outside where it is allowed", "bus/a.go", "golang.org/x/sync/errgroup", ""},
		{"wazero in host", "host/a.go", "github.com/tetratelabs/wazero/api", ""},
		{"wazero in bus", "bus/a.go", "github.com/tetratelabs/wazero", "in host alone"},
		{"nats in flows", "flows/a.go", "github.com/nats-io/nats.go", "known to bus alone"},
		{"nats in cmd", "cmd/flowhost/a.go", "github.com/nats-io/nats.go", ""},
		{"hcl in host", "host/a.go", "github.com/hashicorp/hcl/v2", "not how they run"},
		{"a similar name", "host/a.go", "github.com/tetratelabs/wazeroish", ""},
		{"http in engine", "engine/a.go", "net/http", "engine must not import net/http"},
		{"tests alone in an unknown folder", "docs/a_test.go", own + "flows", ""},
		{"unknown folder", "misc/a.go", "slices", "misc: the directory is not in the table"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := archtest.CheckImports(read(t, map[string]string{test.file: importing(test.imports)}), archtest.Layers, archtest.Owners)
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("%v, want no violation", found)
			case test.want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), test.want)):
				t.Errorf("got %v, want one with %q", found, test.want)
			}
		})
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	got := archtest.CheckDocs(read(t, map[string]string{
		"a/doc.go":       "// Package a has one.\npackage a\n",
		"a/a.go":         "package a\n",
		"b/b.go":         "package b\n",
		"b/b_test.go":    "// Package b has one where no reader looks.\npackage b\n",
		"only/x_test.go": "// Package only_test is a test.\npackage only_test\n",
	}))
	places(t, got, "b")
}

func TestContexts(t *testing.T) {
	t.Parallel()
	const call = "package p\n\nimport \"context\"\n\nvar ctx = context.Background()\n"
	got := archtest.CheckContexts(read(t, map[string]string{
		"host/a.go":         call,
		"host/todo.go":      strings.Replace(call, "Background", "TODO", 1),
		"host/renamed.go":   "package p\n\nimport c \"context\"\n\nvar _ = c.Background()\n",
		"host/other.go":     "package p\n\nvar context T\n\nvar _ = context.Background()\n",
		"host/a_test.go":    call,
		"cmd/flowhost/a.go": call,
	}))
	places(t, got, "host/a.go:5", "host/renamed.go:5", "host/todo.go:5")
}

func TestInits(t *testing.T) {
	t.Parallel()
	const source = "package p\n\nfunc init() {}\n\ntype t struct{}\n\nfunc (t) init() {}\n"
	got := archtest.CheckInits(read(t, map[string]string{
		"sdk/a.go":                     source,
		"sdk/a_test.go":                source,
		"examples/x/plugins/y/main.go": source,
	}))
	places(t, got, "sdk/a.go:3")
}

func TestThreads(t *testing.T) {
	t.Parallel()
	const source = "package p\n\nimport \"sync\"\n\nfunc f(g *sync.WaitGroup) {\n\tgo f(nil)\n\tg.Go(nil)\n\tg.Wait()\n}\n"
	got := archtest.CheckThreads(read(t, map[string]string{
		"a/b/a.go":      source,
		"a/b/a_test.go": source,
		"c/c.go":        source,
	}), []string{"a"})
	places(t, got, "a/b/a.go:6", "a/b/a.go:7")
}

func TestSizes(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range archtest.MaxFiles + 1 {
		files[fmt.Sprintf("large/f%d.go", i)] = "package large\n"
		files[fmt.Sprintf("tests/f%d_test.go", i)] = "package tests\n"
	}
	files["methods/a.go"] = "package methods\n\ntype t struct{}\n" + strings.Repeat("\nfunc (*t) m() {}\n", archtest.MaxMethods+1)
	places(t, archtest.CheckSizes(read(t, files), nil), "large", "methods.t")
	places(t, archtest.CheckSizes(read(t, files), map[string]int{"large": archtest.MaxFiles + 1}), "methods.t")
	places(t, archtest.CheckSizes(read(t, files), map[string]int{"large": archtest.MaxFiles + 2}), "large", "methods.t")
}

func TestEmbedding(t *testing.T) {
	t.Parallel()
	packages := read(t, map[string]string{
		"a/a.go": "package a\n\ntype inner struct{ n int }\n\ntype middle struct{ inner }\n\ntype outer struct{ *middle }\n\ntype named struct{ m middle }\n",
		"b/b.go": "package b\n\nimport \"sync\"\n\ntype lock struct{ sync.Mutex }\n\ntype all struct{ lock }\n",
	})
	places(t, archtest.CheckEmbedding(packages, nil), "a/a.go:7")
	places(t, archtest.CheckEmbedding(packages, []string{"a.outer"}))
}

func TestWrites(t *testing.T) {
	t.Parallel()
	const source = `package p

import (
	"os"
	"time"
)

func f(file *os.File, now time.Time) {
	os.Remove("a")
	file.Truncate(0)
	now.Truncate(time.Second)
	os.Open("a")
}
`
	layers := []archtest.Layer{{Folder: "host"}, {Folder: "sdk"}, {Folder: "internal", TestOnly: true}}
	packages := read(t, map[string]string{
		"host/listed.go":  source,
		"host/less.go":    source,
		"host/none.go":    source,
		"host/a_test.go":  source,
		"sdk/a.go":        source,
		"internal/a/a.go": source,
		"host/list.go":    "package p\n\nimport \"container/list\"\n\nfunc g(l *list.List) { l.Remove(nil) }\n",
	})
	got := archtest.CheckWrites(packages, layers, []archtest.Write{
		{File: "host/listed.go", Calls: "Remove Truncate"},
		{File: "host/less.go", Calls: "Remove"},
		{File: "host/old.go", Calls: "Remove"},
	})
	places(t, got, "host/less.go", "host/none.go", "host/old.go")
}

func TestReadLeavesOut(t *testing.T) {
	t.Parallel()
	packages := read(t, map[string]string{
		"run/a.go":                   "package run\n",
		"run/testdata/guest/main.go": "package main\n",
		".hidden/a.go":               "package hidden\n",
		"internal/tools/go.mod":      "module x\n",
		"internal/tools/a.go":        "package tools\n",
	})
	if len(packages) != 1 || packages[0].Folder != "run" {
		t.Errorf("read %v, want run alone", packages)
	}
}

func TestReadBrokenFile(t *testing.T) {
	t.Parallel()
	_, err := archtest.Read(fstest.MapFS{"run/a.go": &fstest.MapFile{Data: []byte("package run\nfunc {")}})
	if err == nil || !strings.Contains(err.Error(), "run/a.go:2") {
		t.Errorf("got %v, want the place of the mistake", err)
	}
}

func places(t *testing.T, found []archtest.Violation, want ...string) {
	t.Helper()
	var got []string
	for _, v := range found {
		got = append(got, v.Place)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
