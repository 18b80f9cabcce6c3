package artifacts_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
)

func TestKeep(t *testing.T) {
	t.Parallel()
	for name, newSite := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newSite(t).open(t, 2<<20)
			a := artifacts.New(artifacts.Config{Store: store, Max: 3 << 20})
			content := bytes.Repeat([]byte("0123456789"), 60_000)
			for range 2 { // the second time nothing more is stored
				digest, err := a.Keep(t.Context(), content, "application/json")
				if err != nil {
					t.Fatal(err)
				}
				r, err := store.Open(t.Context(), digest)
				if err != nil {
					t.Fatal(err)
				}
				back := make([]byte, len(content))
				n, err := r.ReadAt(t.Context(), back, 0)
				if err != nil || !bytes.Equal(back[:n], content) || r.Info() != (artifacts.Info{Size: int64(len(content)), ContentType: "application/json"}) {
					t.Errorf("%d bytes, %+v, %v", n, r.Info(), err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if _, err := a.Keep(t.Context(), make([]byte, 5<<19), ""); !errors.Is(err, artifacts.ErrFull) {
				t.Errorf("more than the quota: %v", err)
			}
			if _, err := a.Keep(t.Context(), make([]byte, 4<<20), ""); err == nil || errors.Is(err, artifacts.ErrFull) {
				t.Errorf("more than the most of one: %v", err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := a.Keep(ended, []byte("x"), ""); name == "objects" && err == nil {
				t.Error("kept although nobody waits any more")
			}
			if _, err := store.Sweep(t.Context(), func(string) (bool, error) { return true, nil }, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
}
