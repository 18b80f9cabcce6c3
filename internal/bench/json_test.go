package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	segmentio "github.com/segmentio/encoding/json"
	"github.com/tidwall/gjson"

	"github.com/flowhost/flowhost/run"
)

// BenchmarkJSON checks that 40 KB are JSON: an output of a task.
func BenchmarkJSON(b *testing.B) {
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"values", orderOf(1000)}, // some 10 000 names, texts and numbers
		{"text", []byte(`{"text":"` + strings.Repeat("lorem ipsum ", 3600) + `"}`)},
	} {
		for _, peer := range []struct {
			name  string
			valid func([]byte) bool
		}{
			{"flowhost", func(data []byte) bool { return run.CheckPayload(data) == nil }}, // with its bounds
			{"encoding-json", json.Valid},
			{"gjson", gjson.ValidBytes},
			{"segmentio", segmentio.Valid},
			{"sonic", sonic.Valid},
		} {
			b.Run(c.name+"/"+peer.name, func(b *testing.B) {
				b.SetBytes(int64(len(c.data)))
				for b.Loop() {
					if !peer.valid(c.data) {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}
