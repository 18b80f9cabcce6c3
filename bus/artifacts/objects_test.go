package artifacts_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/internal/bustest"
)

// TestObjectsLayout has nats.go read what Objects has written, as the NATS tools do.
func TestObjectsLayout(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	o := openObjects(t, nc, 0)
	data := noise(1, 700<<10)
	digest := put(t, o, data, "text/csv", time.Now())
	bucket, err := bustest.JetStream(t, nc).ObjectStore(t.Context(), artifacts.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	got, err := bucket.GetBytes(t.Context(), strings.TrimPrefix(digest, "sha256:")) // which checks the digest
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	info, err := bucket.GetInfo(t.Context(), strings.TrimPrefix(digest, "sha256:"))
	if err != nil || info.Metadata["content_type"] != "text/csv" {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestDamagedObject removes a part.
func TestDamagedObject(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	o := openObjects(t, nc, 0)
	digest := put(t, o, noise(1, 700<<10), "", time.Now())
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), "OBJ_"+artifacts.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	r, err := o.Open(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.ReadAt(t.Context(), make([]byte, 700<<10), 0); !errors.Is(err, artifacts.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
	put(t, o, noise(1, 700<<10), "", time.Now())
	if got, _ := get(t, o, digest); !bytes.Equal(got, noise(1, 700<<10)) {
		t.Error("stored again, the artifact still lacks a part")
	}
}

// TestQuotaOfObjects changes the size of the bucket, but not below what it holds.
func TestQuotaOfObjects(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	o := openObjects(t, nc, 8<<20)
	put(t, o, noise(1, 3<<20), "", time.Now())
	openObjects(t, nc, 16<<20)
	if _, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: nc, Quota: 2 << 20}); err == nil || !strings.Contains(err.Error(), "larger quota") {
		t.Errorf("%v, want a larger quota asked for", err)
	}
	if _, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: nc}); err != nil {
		t.Error(err)
	}
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), "OBJ_"+artifacts.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	if config := stream.CachedInfo().Config; config.MaxBytes != 16<<20 || config.Discard != jetstream.DiscardNew {
		t.Errorf("%+v, want 16 MiB, full for those who write", config)
	}
}

// TestObjectsSurviveKills has the server end in the middle of whatever a writer does: an
// artifact that exists afterwards is whole.
func TestObjectsSurviveKills(t *testing.T) {
	t.Parallel()
	external := bustest.NewExternal(t)
	external.Start()
	nc := external.Connect(&bustest.LogLines{}, external.Address())
	o, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: nc, Quota: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	data := func(i int) []byte { return noise(uint64(i), 300<<10) }
	tried := 0
	for n := range uint64(6) {
		failed, begun := make(chan int), make(chan struct{}, 1)
		ctx, giveUp := context.WithCancel(t.Context())
		go func() {
			for i := tried; ; i++ {
				_, err := store(ctx, o, data(i), "", time.Now())
				select {
				case begun <- struct{}{}:
				default:
				}
				if err != nil {
					failed <- i + 1
					return
				}
			}
		}()
		<-begun
		external.Stop()
		giveUp()
		tried = <-failed
		external.Start()
		bustest.Eventually(t, "connected again", func() bool { return nc.Stats().Reconnects > n && nc.IsConnected() })
	}
	there := 0
	for i := range tried {
		if exists(t, o, digestOf(data(i))) {
			there++
			if got, _ := get(t, o, digestOf(data(i))); !bytes.Equal(got, data(i)) {
				t.Errorf("artifact %d of %d is changed", i, tried)
			}
		}
	}
	if there < tried-6 {
		t.Errorf("%d of %d artifacts exist: more are missing than were interrupted", there, tried)
	}
}
