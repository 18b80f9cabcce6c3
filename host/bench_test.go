package host_test

import (
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func BenchmarkInvoke(b *testing.B) {
	tasks := guest(b, "tasks")
	command := guest(b, "command")
	noop := writeFile(b, "noop.wasm", noop().bytes())
	for _, bb := range []struct{ name, path, function, input string }{
		{"noop", noop, "run", "1"},
		{"go noop", tasks, "nothing", "1"},
		{"go echo", tasks, "echo", `{"items":[1,2,3]}`},
		{"go command", command, "main", `"echo"`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			h := newHost(b, host.Config{})
			call := callOf(load(b, h, bb.path), bb.function, bb.input)
			b.ReportAllocs()
			for b.Loop() {
				if result := invoke(b, h, call); result.Outcome != run.OutcomeSucceeded {
					b.Fatal(result.Failure)
				}
			}
		})
	}
}

func BenchmarkInvokeParallel(b *testing.B) {
	h := newHost(b, host.Config{})
	call := callOf(load(b, h, guest(b, "tasks")), "nothing", "1")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if result, err := h.Invoke(b.Context(), call); err != nil || result.Outcome != run.OutcomeSucceeded {
				b.Error(result.Failure, err)
			}
		}
	})
}

// BenchmarkInspect is of a module that the host has not seen, with and without
// native code in the cache.
func BenchmarkInspect(b *testing.B) {
	path := guest(b, "tasks")
	for _, bb := range []struct {
		name   string
		cached bool
	}{{"cold", false}, {"native code cached", true}} {
		b.Run(bb.name, func(b *testing.B) {
			cache := b.TempDir()
			for b.Loop() {
				config := host.Config{CompileCommand: compileCommand()}
				if bb.cached {
					config.CacheDir = cache
				}
				h, err := host.New(b.Context(), config)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := h.Inspect(b.Context(), path); err != nil {
					b.Fatal(err)
				}
				if err := h.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
