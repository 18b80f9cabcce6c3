package hostile

import (
	"context"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// badPointers is, for each function that can be imported, a guest that calls it
// with 100 combinations of numbers of which some point out of memory, some wrap
// around and some are negative. What the host refuses is an error number.
func badPointers() []attack {
	numbers := []int{0, 1, 3, 8, pageSize - 1, pageSize, 1<<31 - 1, -1 << 31, -8, -1}
	var attacks []attack
	for _, f := range importable() {
		if f.name == procExit.name || f.name == "fd_renumber" { // cases of their own
			continue
		}
		var body code
		for first := range numbers {
			for stride := range numbers {
				for i, kind := range f.kind.params {
					n := numbers[(first+i*stride)%len(numbers)]
					if kind == i64 {
						body = append(body, number64(int64(n))...)
					} else {
						body = append(body, number(n)...)
					}
				}
				body = append(body, call(0)...)
				body = append(body, many(len(f.kind.results), drop)...)
			}
		}
		attacks = append(attacks, attack{
			name: "pointers/" + f.name, what: "pointers and lengths that are not in memory", want: succeeds + "|rejected output_size",
			module: guest{
				imports:   []imported{f},
				functions: []function{{export: "run", kind: task, body: seq(body, number(0))}},
			}.bytes,
		})
	}
	return attacks
}

// importable is the functions that a guest may import.
func importable() []imported {
	functions := []imported{setOutput, setFail, writeLog,
		{"flowhost:task/v1", "size", errno(i32)},
		{"flowhost:task/v1", "read", errno(i32, i32, i32)},
		{"flowhost:task/v1", "time_left", signature{results: []byte{i64}}},
		{"flowhost:task/v1", "should_stop", task},
	}
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	definitions := runtime.Module(wasi).ExportedFunctionDefinitions()
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		d := definitions[name]
		functions = append(functions, imported{wasi, name, signature{d.ParamTypes(), d.ResultTypes()}})
	}
	return functions
}
