package main

import (
	"testing"
	"time"
)

// What one call costs, beside what else there is: wazero with an instance for
// each call (isolated) and with one for all calls (not isolated), and Extism's Go
// SDK in the same two ways. Of these only flowhost can stop a guest here. There
// is no kit at hand for AssemblyScript plugins of Extism.
func BenchmarkPeers(b *testing.B) {
	guests := []struct {
		name, function string
		input          []byte
		module, plugin func(b *testing.B) []byte // plugin: the same for Extism
	}{
		{"go-json", "echo", orderOf(2),
			func(b *testing.B) []byte { return goGuest(b, "flowhost") },
			func(b *testing.B) []byte { return goGuest(b, "extism") }},
		{"c-nothing", "nothing", nil, kept("c/small"), kept("c/small.extism")},
		{"c-echo", "echo", orderOf(2), kept("c/small"), kept("c/small.extism")},
		{"c-echo-40KB", "echo", orderOf(1000), kept("c/small"), kept("c/small.extism")},
		{"assemblyscript-sort", "sort", []byte("1000"), kept("assemblyscript/guest"), nil},
		{"c-kernel", "kernel", []byte("1"), kept("c/kernel"), kept("c/kernel.extism")},
	}
	for _, g := range guests {
		b.Run(g.name, func(b *testing.B) {
			var output []byte
			binary := g.module(b)
			plain := newBare(b, binary, false)
			ways := []*way{
				caller(plain.fresh).way(b, "wazero-fresh", g.function, g.input, &output),
				plain.reused(b).way(b, "wazero-reused", g.function, g.input, &output),
				flowhost(b, binary).way(b, "flowhost", g.function, g.input, &output),
			}
			ours := ways[2]
			if g.plugin != nil {
				plugin := newExtism(b, g.plugin(b))
				ways = append(ways,
					extismFresh(plugin).way(b, "extism-fresh", g.function, g.input, &output),
					extismReused(b, plugin).way(b, "extism-reused", g.function, g.input, &output))
			}
			compare(b, ways)
			tabulate(b, ways, ours)
		})
	}
}

func kept(name string) func(b *testing.B) []byte {
	return func(b *testing.B) []byte { return keptGuest(b, name) }
}

// What it costs that a guest can be stopped, where it computes for long: nothing
// (wazero as it is), wazero's own way (WithCloseOnContextDone), and flowhost. Each
// call has an instance in its first state, as a guest that has collected garbage
// before would not do the same work again; what having it costs, a call that does
// nothing, is taken away.
func BenchmarkInterruptible(b *testing.B) {
	for _, g := range []struct {
		name, function string
		input          []byte
		module         func(b *testing.B) []byte
	}{
		{"tight-loop", "run", []byte("20000000"), kept("wat/tight")},
		{"c-kernel", "kernel", []byte("200"), kept("c/kernel")},
		{"assemblyscript-sort", "sort", []byte("60000"), kept("assemblyscript/guest")},
		{"go-json-80KB", "echo", orderOf(2000), func(b *testing.B) []byte { return goGuest(b, "flowhost") }},
	} {
		b.Run(g.name, func(b *testing.B) {
			var output, none []byte
			binary := g.module(b)
			var ways, overheads []*way
			for _, c := range []struct {
				name string
				call caller
			}{
				{"wazero", newBare(b, binary, false).fresh},
				{"wazero-interruptible", newBare(b, binary, true).fresh},
				{"flowhost", flowhost(b, binary)},
			} {
				ways = append(ways, c.call.way(b, c.name, g.function, g.input, &output))
				overheads = append(overheads, c.call.way(b, c.name+"-nothing", "nothing", nil, &none))
			}
			compareLong(b, append(ways, overheads...))
			for i, w := range ways {
				w.deduct(quantile(overheads[i].took, 0.5))
			}
			tabulate(b, ways, ways[0])
		})
	}
}

func (w *way) deduct(overhead time.Duration) {
	for i := range w.took {
		w.took[i] -= overhead
	}
}
