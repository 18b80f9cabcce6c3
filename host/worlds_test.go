package host_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// world is a guest whose function mutate tells what it sees of itself, down to
// the last byte, and then changes all of it. See testdata/guests/README.md.
type world struct {
	name  string
	path  func(testing.TB) string
	alone bool // what it sees follows from its bytes alone, not from what WASI says
	fresh bool // it has state that no image can hold
}

var worlds = []world{
	{"go", func(t testing.TB) string { return guest(t, "go") }, false, false},
	{"c", kept("c/world"), true, false},
	{"assemblyscript", kept("assemblyscript/guest"), true, false},
	{"tables", kept("wat/tables"), true, false},
	{"by hand", kept("wat/world"), true, true},
}

// kept is the path of a guest that lies beside its source.
func kept(name string) func(testing.TB) string {
	return func(testing.TB) string { return "testdata/guests/" + name + ".wasm" }
}

// bareInstance is an instance of wazero's own, with what the guests of worlds
// import. Nothing puts it back between two calls.
type bareInstance struct {
	module api.Module
	input  string
	told   string // fields of the last log line
}

func newBareInstance(t testing.TB, path string) *bareInstance {
	t.Helper()
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &bareInstance{}
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	_, err = r.NewHostModuleBuilder("flowhost:task/v1").
		NewFunctionBuilder().WithFunc(func(int32) int32 { return int32(len(b.input)) }).Export("size").
		NewFunctionBuilder().WithFunc(b.read).Export("read").
		NewFunctionBuilder().WithFunc(func(int32, int32) int32 { return 0 }).Export("output").
		NewFunctionBuilder().WithFunc(func(int32, int32) int32 { return 0 }).Export("fail").
		NewFunctionBuilder().WithFunc(b.log).Export("log").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.module, err = r.InstantiateWithConfig(ctx, binary, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bareInstance) read(_ context.Context, m api.Module, _ int32, at, size uint32) int32 {
	m.Memory().Write(at, []byte(b.input)[:min(uint32(len(b.input)), size)])
	return int32(len(b.input))
}

func (b *bareInstance) log(_ context.Context, m api.Module, _ int32, _, _, at, size uint32) int32 {
	fields, _ := m.Memory().Read(at, size)
	b.told = string(fields)
	return 0
}

// mutate gives what the guest told. How it ended does not matter.
func (b *bareInstance) mutate(t testing.TB, input string) (string, error) {
	t.Helper()
	b.input, b.told = `"`+input+`"`, ""
	_, err := b.module.ExportedFunction("mutate").Call(t.Context())
	return b.told, err
}

// split takes apart what a guest told: by key, or by number where it is one list.
func split(t testing.TB, told string) map[string]string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(told), &fields); err != nil {
		t.Fatalf("the guest told %q: %v", told, err)
	}
	values := map[string]string{}
	for key, value := range fields {
		if len(fields) > 1 {
			values[key] = string(value)
			continue
		}
		for i, word := range strings.Split(key, ",") {
			values["word "+string(rune('a'+i))] = word
		}
	}
	return values
}
