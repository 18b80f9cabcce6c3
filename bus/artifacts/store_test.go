package artifacts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
)

// site is where a store is, which can be opened again as after a crash.
type site struct {
	open func(t testing.TB, quota int64) artifacts.Store
	room func(t testing.TB) uint64 // bytes and messages or files that are there, one number of the kind

	damage func(t testing.TB, digest string, bytes []byte) // puts other bytes in the place of an artifact
}

// sites are the implementations of a store.
var sites = map[string]func(t testing.TB) site{
	"files": func(t testing.TB) site {
		dir := t.TempDir()
		return site{
			open: func(t testing.TB, quota int64) artifacts.Store { return openFiles(t, dir, quota) },
			room: func(t testing.TB) uint64 { return uint64(len(allFiles(t, dir))) },
			damage: func(t testing.TB, digest string, bytes []byte) {
				digits := strings.TrimPrefix(digest, "sha256:")
				if err := os.WriteFile(filepath.Join(dir, digits[:2], digits), bytes, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	},
	"objects": func(t testing.TB) site {
		nc := connect(t)
		return site{
			open: func(t testing.TB, quota int64) artifacts.Store { return openObjects(t, nc, quota) },
			room: func(t testing.TB) uint64 {
				stream, err := bustest.JetStream(t, nc).Stream(t.Context(), "OBJ_"+artifacts.Bucket)
				if err != nil {
					t.Fatal(err)
				}
				return stream.CachedInfo().State.Msgs
			},
			damage: func(t testing.TB, digest string, bytes []byte) {
				bucket, err := bustest.JetStream(t, nc).ObjectStore(t.Context(), artifacts.Bucket)
				if err == nil {
					_, err = bucket.PutBytes(t.Context(), strings.TrimPrefix(digest, "sha256:"), bytes)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	},
}

func openFiles(t testing.TB, dir string, quota int64) *artifacts.Files {
	t.Helper()
	f, err := artifacts.OpenFiles(artifacts.FilesConfig{Dir: dir, Quota: quota})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func connect(t testing.TB) *nats.Conn {
	t.Helper()
	nc, err := bustest.StartServer(t, natsd.Config{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// openObjects takes all that is not described for leftovers.
func openObjects(t testing.TB, nc *nats.Conn, quota int64) *artifacts.Objects {
	t.Helper()
	if quota == 0 {
		quota = 1 << 30 // the server of a test reserves it
	}
	o, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: nc, Quota: quota, Leftover: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// eachStore runs a test on every implementation.
func eachStore(t *testing.T, test func(t *testing.T, s site)) {
	t.Parallel()
	for name, make := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return artifacts.Digest(sum[:])
}

// put stores an artifact in parts of an odd size.
func put(t testing.TB, s artifacts.Store, data []byte, contentType string, now time.Time) string {
	t.Helper()
	digest, err := store(t.Context(), s, data, contentType, now)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func store(ctx context.Context, s artifacts.Store, data []byte, contentType string, now time.Time) (string, error) {
	w, err := s.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer w.Discard(ctx)
	for rest := data; len(rest) > 0; {
		part := rest[:min(len(rest), 70_001)]
		if err := w.Write(ctx, part); err != nil {
			return "", err
		}
		rest = rest[len(part):]
	}
	digest := digestOf(data)
	return digest, w.Commit(ctx, digest, artifacts.Info{Size: int64(len(data)), ContentType: contentType}, now)
}

func get(t testing.TB, s artifacts.Store, digest string) ([]byte, artifacts.Info) {
	t.Helper()
	r, err := s.Open(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data := make([]byte, r.Info().Size)
	if n, err := r.ReadAt(t.Context(), data, 0); err != nil || n != len(data) {
		t.Fatalf("read %d of %d bytes: %v", n, len(data), err)
	}
	return data, r.Info()
}

func exists(t testing.TB, s artifacts.Store, digest string) bool {
	t.Helper()
	r, err := s.Open(t.Context(), digest)
	if errors.Is(err, artifacts.ErrNotFound) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return true
}

// noise is bytes that differ by seed.
func noise(seed uint64, size int) []byte {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	_, _ = random.Read(data)
	return data
}

func TestStoreKeeps(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		store := s.open(t, 0)
		now := time.Now()
		for i, size := range []int{0, 1, 4096, 256<<10 - 1, 256 << 10, 256<<10 + 1, 3<<20 + 17} {
			data := noise(uint64(i), size)
			digest := put(t, store, data, "text/plain", now)
			for _, store := range []artifacts.Store{store, s.open(t, 0)} {
				got, info := get(t, store, digest)
				if !bytes.Equal(got, data) || info != (artifacts.Info{Size: int64(size), ContentType: "text/plain"}) {
					t.Errorf("%d bytes: got %d, %+v", size, len(got), info)
				}
			}
		}
		for _, digest := range []string{digestOf([]byte("other")), "", "sha256:", "x", "../../etc/passwd", "sha256:../../../../../../../../../../../../../../../../../../../../../etc/passwd"} {
			if exists(t, store, digest) {
				t.Errorf("%q exists", digest)
			}
		}
	})
}

// TestStoreReadsAnywhere compares parts at random places with the artifact.
func TestStoreReadsAnywhere(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		store := s.open(t, 0)
		data := noise(1, 2<<20+5)
		r, err := store.Open(t.Context(), put(t, store, data, "", time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		random := rand.New(rand.NewPCG(5, 6))
		for range 200 {
			offset, length := random.IntN(len(data)+100), random.IntN(600<<10)
			got := make([]byte, length)
			n, err := r.ReadAt(t.Context(), got, int64(offset))
			want := data[min(offset, len(data)):min(offset+length, len(data))]
			if err != nil || !bytes.Equal(got[:n], want) {
				t.Fatalf("%d bytes at %d: got %d (%v), want %d of the artifact", length, offset, n, err, len(want))
			}
		}
	})
}

func TestStoreKeepsEqualBytesOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		store := s.open(t, 0)
		data := noise(1, 600<<10)
		digest := put(t, store, data, "text/csv", time.Now())
		before := s.room(t)
		put(t, store, data, "text/plain", time.Now())
		if after := s.room(t); after != before {
			t.Errorf("%d files or messages, and %d before", after, before)
		}
		if got, info := get(t, store, digest); !bytes.Equal(got, data) || info.ContentType != "text/csv" {
			t.Errorf("%d bytes, %+v, want the first content type", len(got), info)
		}
	})
}

// TestStoreInParallel has writers of equal and of different artifacts.
func TestStoreInParallel(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		opened := s.open(t, 0)
		var writers sync.WaitGroup
		for i := range 12 {
			writers.Go(func() {
				if _, err := store(t.Context(), opened, noise(uint64(i%4), 500<<10), "", time.Now()); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		for i := range 4 {
			data := noise(uint64(i), 500<<10)
			if got, _ := get(t, opened, digestOf(data)); !bytes.Equal(got, data) {
				t.Errorf("artifact %d is changed", i)
			}
		}
	})
}

// TestStoreDiscards leaves nothing of what is discarded, and of what a crash leaves nothing
// after the next start.
func TestStoreDiscards(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		store := s.open(t, 0)
		before := s.room(t)
		begin := func() artifacts.Writer {
			t.Helper()
			w, err := store.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), noise(1, 600<<10)); err != nil {
				t.Fatal(err)
			}
			if s.room(t) == before {
				t.Fatal("nothing is written: the test would prove nothing")
			}
			return w
		}
		w := begin()
		w.Discard(t.Context())
		w.Discard(t.Context())
		if after := s.room(t); after != before {
			t.Errorf("%d files or messages are left, want %d", after, before)
		}
		crashed := begin()
		s.open(t, 0)
		if after := s.room(t); after != before {
			t.Errorf("%d files or messages are left of a crash, want %d", after, before)
		}
		// What has lost its parts cannot become an artifact.
		if err := crashed.Commit(t.Context(), digestOf(noise(1, 600<<10)), artifacts.Info{Size: 600 << 10}, time.Now()); err == nil {
			t.Error("an artifact without its parts is committed")
		}
		crashed.Discard(t.Context())
		if exists(t, store, digestOf(noise(1, 600<<10))) {
			t.Error("an artifact without its parts exists")
		}
	})
}

func TestStoreQuota(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		const quota = 4 << 20
		opened := s.open(t, quota)
		first := put(t, opened, noise(1, 3<<20), "", time.Now().Add(-30*time.Hour))
		for range 3 { // what is refused leaves no trace
			if _, err := store(t.Context(), opened, noise(2, 2<<20), "", time.Now()); !errors.Is(err, artifacts.ErrFull) {
				t.Fatalf("%v, want ErrFull", err)
			}
		}
		put(t, opened, noise(3, 512<<10), "", time.Now())
		opened = s.open(t, quota) // which counts what is there
		if _, err := store(t.Context(), opened, noise(2, 2<<20), "", time.Now()); !errors.Is(err, artifacts.ErrFull) {
			t.Fatalf("%v, want ErrFull", err)
		}
		none := func(digest string) (bool, error) { return digest != first, nil }
		if _, err := opened.Sweep(t.Context(), none, time.Now().Add(26*time.Hour)); err != nil {
			t.Fatal(err)
		}
		put(t, opened, noise(2, 2<<20), "", time.Now())
	})
}

func TestStoreSweep(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		store := s.open(t, 0)
		now := time.Now()
		used := put(t, store, noise(1, 300<<10), "text/csv", now)
		unused := put(t, store, noise(2, 300<<10), "text/csv", now)
		unknown := put(t, store, noise(3, 300<<10), "text/csv", now)
		retained := put(t, store, noise(4, 300<<10), "text/csv", now)
		before := s.room(t)
		failure := errors.New("the history cannot be read")
		referenced := func(digest string) (bool, error) {
			if digest == unknown {
				return false, failure
			}
			return digest == used, nil
		}
		for _, early := range []time.Duration{0, 30 * time.Minute, artifacts.Grace} {
			if _, err := store.Sweep(t.Context(), referenced, now.Add(early)); !errors.Is(err, failure) {
				t.Fatalf("%v, want the error of the history", err)
			}
			if !exists(t, store, unused) {
				t.Fatalf("an artifact is removed after %s", early)
			}
		}
		// From here on the others were retained long ago, and one is retained in the moment
		// between the question and the removal.
		late := now.Add(3 * artifacts.Grace)
		asked := func(digest string) (bool, error) {
			if digest == retained {
				if err := store.Retain(t.Context(), []string{retained}, late); err != nil {
					t.Error(err)
				}
			}
			return referenced(digest)
		}
		swept, err := store.Sweep(t.Context(), asked, late)
		if want := (artifacts.Swept{Artifacts: 1, Bytes: 300 << 10}); !errors.Is(err, failure) || swept != want {
			t.Fatalf("%+v, %v, want %+v and the error of the history", swept, err, want)
		}
		for digest, want := range map[string]bool{used: true, unused: false, unknown: true, retained: true} {
			if got := exists(t, store, digest); got != want {
				t.Errorf("%s exists: %t, want %t", digest, got, want)
			}
		}
		if after := s.room(t); after >= before {
			t.Errorf("%d files or messages, %d before the sweep", after, before)
		}
		put(t, store, noise(2, 300<<10), "text/plain", late)
		if got, info := get(t, store, unused); !bytes.Equal(got, noise(2, 300<<10)) || info.ContentType != "text/plain" {
			t.Errorf("stored again: %d bytes, %+v", len(got), info)
		}
		if err := store.Retain(t.Context(), []string{digestOf(nil)}, late); !errors.Is(err, artifacts.ErrNotFound) {
			t.Errorf("%v, want ErrNotFound", err)
		}
	})
}

func ExampleDigest() {
	sum := sha256.Sum256([]byte("report"))
	fmt.Println(artifacts.Digest(sum[:])[:20])
	// Output: sha256:845e91831319e
}
