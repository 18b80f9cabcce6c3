package kv_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run/access"
)

// BenchmarkOperations has each operation beside the same by nats.go, with values of 256
// bytes; list reads a page of 100 of 1000 keys, natively all names.
func BenchmarkOperations(b *testing.B) {
	nc := connect(b, bustest.StartServer(b, natsd.Config{}))
	s := open(b, kv.Config{Conn: nc}).Session(granted.Always)
	value := make([]byte, 256)
	for i := range 1000 {
		must(b, s, "kv.put", fmt.Sprintf(`{"bucket":"counters","key":"k.%d"}`, i), value)
	}
	bucket, err := bustest.JetStream(b, nc).KeyValue(b.Context(), "FH_KV_counters")
	if err != nil {
		b.Fatal(err)
	}
	own := func(kind, head string, body []byte) func(*testing.B) error {
		return func(b *testing.B) error {
			a := s.Do(b.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(head), Body: body})
			if a.Fault != nil {
				return a.Fault
			}
			return nil
		}
	}
	for _, bench := range []struct {
		name string
		do   func(*testing.B) error
	}{
		{"get", own("kv.get", `{"bucket":"counters","key":"k.1"}`, nil)},
		{"get-native", func(b *testing.B) error { _, err := bucket.Get(b.Context(), "k.1"); return err }},
		{"put", own("kv.put", `{"bucket":"counters","key":"k.1"}`, value)},
		{"put-native", func(b *testing.B) error { _, err := bucket.Put(b.Context(), "k.1", value); return err }},
		{"delete", own("kv.delete", `{"bucket":"counters","key":"gone"}`, nil)},
		{"delete-native", func(b *testing.B) error { return bucket.Delete(b.Context(), "gone") }},
		{"list", own("kv.list", `{"bucket":"counters","prefix":"k.","limit":100}`, nil)},
		{"list-native", func(b *testing.B) error {
			keys, err := bucket.ListKeysFiltered(b.Context(), "k.>")
			if err != nil {
				return err
			}
			for range keys.Keys() {
			}
			return nil
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.do(b); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
