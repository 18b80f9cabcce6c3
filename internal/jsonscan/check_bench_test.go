package jsonscan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/jsonscan"
)

// orders is a document of many short names, texts and numbers. One item takes 42 bytes.
func orders(items int) []byte {
	var list []string
	for i := range items {
		list = append(list, fmt.Sprintf(`{"sku":"KB-%d","quantity":%d,"price":12.5}`, i, i%7+1))
	}
	return []byte(`{"id":"o-1001","customer":"ada","items":[` + strings.Join(list, ",") + `],"total":154.9}`)
}

// BenchmarkCheck is beside encoding/json.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"40 KB of short values", orders(1_000)},
		{"40 KB of text", []byte(`{"text":"` + strings.Repeat("lorem ipsum ", 3_600) + `"}`)},
	} {
		for _, way := range []struct {
			name  string
			valid func([]byte) bool
		}{
			{"flowhost", func(data []byte) bool { _, _, err := jsonscan.Check(data); return err == nil }},
			{"encoding-json", json.Valid},
		} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(int64(len(c.data)))
				for b.Loop() {
					if !way.valid(c.data) {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}
