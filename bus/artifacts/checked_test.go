package artifacts_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run/access"
)

func part(handle int, offset, length int64) string {
	return fmt.Sprintf(`{"handle":%d,"offset":%d,"length":%d}`, handle, offset, length)
}

// Bytes that are not those of the digest are found out, in whatever order they are read, and
// replaced by whoever stores the artifact again.
func TestDamagedArtifacts(t *testing.T) {
	const size, piece = 3 << 20, 1 << 20
	data := noise(1, size)
	changed := slices.Clone(data)
	changed[size/2] ^= 1
	for name, bytes := range map[string][]byte{"changed": changed, "shorter": data[:size-1], "longer": append(slices.Clone(data), 0), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			eachSession(t, func(t *testing.T, store artifacts.Store, at site) { testDamaged(t, store, at, data, bytes) })
		})
	}
	t.Run("out of order", func(t *testing.T) {
		eachSession(t, func(t *testing.T, store artifacts.Store, at site) {
			digest := put(t, store, data, "", time.Now())
			s := session(t, artifacts.Config{Store: store}, granted, func(string) bool { return true })
			h, _ := must(t, s, "artifact.open", fmt.Sprintf(`{"digest":%q}`, digest), nil)
			for _, offset := range []int64{2 * piece, 0, piece, piece} {
				if _, got := must(t, s, "artifact.read", part(h.Handle, offset, piece), nil); !slices.Equal(got, data[offset:offset+piece]) {
					t.Errorf("other bytes at %d", offset)
				}
			}
			at.damage(t, digest, changed)
			h, _ = must(t, s, "artifact.open", fmt.Sprintf(`{"digest":%q}`, digest), nil)
			fails(t, s, access.CodeDamaged, "artifact.read", part(h.Handle, 2*piece, piece), nil)
			fails(t, s, access.CodeDamaged, "artifact.read", part(h.Handle, 0, piece), nil)
		})
	})
}

func testDamaged(t *testing.T, store artifacts.Store, at site, data, stored []byte) {
	digest := put(t, store, data, "text/csv", time.Now())
	at.damage(t, digest, stored)
	var log bytes.Buffer
	config := artifacts.Config{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))}
	s := session(t, config, granted, func(string) bool { return true })
	open := fmt.Sprintf(`{"digest":%q}`, digest)
	if len(stored) == 0 {
		fails(t, s, access.CodeDamaged, "artifact.open", open, nil)
	} else {
		h, _ := must(t, s, "artifact.open", open, nil)
		offset, fault := int64(0), (*access.Fault)(nil)
		for fault == nil && offset < h.Size {
			var got []byte
			_, got, fault = do(t, s, "artifact.read", part(h.Handle, offset, 1<<20), nil)
			offset += int64(len(got))
		}
		if fault == nil || fault.Code != access.CodeDamaged {
			t.Errorf("reading ends with %+v", fault)
		}
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, digest) {
		t.Errorf("the log is %q", text)
	}
	put(t, store, data, "", time.Now())
	if got, _ := get(t, store, digest); !bytes.Equal(got, data) {
		t.Error("storing it again does not repair it")
	}
}

// The bucket fits a server that has less room than the usual size, and leaves some to others.
func TestBucketFitsTheServer(t *testing.T) {
	t.Parallel()
	const room = 1 << 30
	nc, err := bustest.StartServer(t, natsd.Config{MaxStore: room}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	o, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: nc})
	if err != nil {
		t.Fatal(err)
	}
	put(t, o, noise(1, 1<<20), "", time.Now())
	if _, err := bustest.JetStream(t, nc).CreateStream(t.Context(), jetstream.StreamConfig{Name: "other", Subjects: []string{"other"}, MaxBytes: room / 4}); err != nil {
		t.Errorf("the bucket leaves no room: %v", err)
	}
}
