package messages_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/messages"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// FuzzHeader writes an accepted header as it is on the wire and reads it as clients do: it is
// that header and no other.
func FuzzHeader(f *testing.F) {
	for _, h := range refusedHeaders {
		for name, values := range h {
			f.Add(name, values[0])
		}
	}
	f.Add("Content-Type", "text/plain; charset=utf-8")
	f.Add("X", "\t a\tb ")
	f.Fuzz(func(t *testing.T, name, value string) {
		got, fault := messages.Header(access.KindPublish, map[string][]string{name: {value}}, &access.Caller{})
		if fault != nil {
			return
		}
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "nats-") || strings.HasPrefix(lower, "fh-") || lower == "status" {
			t.Errorf("%q is accepted", name)
		}
		var wire strings.Builder
		wire.WriteString("NATS/1.0\r\n")
		for name, values := range got {
			for _, value := range values {
				wire.WriteString(name + ": " + value + "\r\n")
			}
		}
		wire.WriteString("\r\n")
		read, err := nats.DecodeHeadersMsg([]byte(wire.String()))
		if err != nil {
			t.Fatalf("%q: %v", wire.String(), err)
		}
		want := []string{run.HeaderHops, name}
		slices.Sort(want)
		if names := slices.Sorted(maps.Keys(read)); !slices.Equal(names, want) || strings.TrimSpace(read[name][0]) != strings.TrimSpace(value) {
			t.Errorf("%q is read as %q", wire.String(), read)
		}
	})
}
