package kv_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run/access"
)

// Only buckets of tasks are listed, whatever else the account has.
func TestBuckets(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	store := open(t, kv.Config{Conn: nc, BucketBytes: 2 << 20})
	if all, err := store.Buckets(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	s := store.Session(access.Policy{Grants: access.Grants{KV: map[string]access.Mode{"counters": access.ReadWrite, "b-2": access.ReadWrite}}}.Always)
	for _, head := range []string{`{"bucket":"counters","key":"a"}`, `{"bucket":"counters","key":"b"}`, `{"bucket":"b-2","key":"a"}`} {
		must(t, s, "kv.put", head, []byte("value"))
	}
	for _, other := range []string{"OTHER", "FH_KV_Upper"} {
		if _, err := bustest.JetStream(t, nc).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: other, MaxBytes: 1 << 20}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := store.Buckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b kv.Bucket) int { return strings.Compare(a.Name, b.Name) })
	if len(all) != 2 || all[0].Name != "b-2" || all[0].Keys != 1 || all[1].Name != "counters" || all[1].Keys != 2 || all[1].Bytes == 0 || all[1].MaxBytes != 2<<20 {
		t.Errorf("%+v", all)
	}
}
