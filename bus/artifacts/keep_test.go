package artifacts_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/run/access"
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

// What an attempt has made stays while it runs, however long, and for the grace after its end.
func TestSweepKeepsWhatRunningAttemptsHaveMade(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := openFiles(t, t.TempDir(), 0)
	a := artifacts.New(artifacts.Config{Store: store, Now: func() time.Time { return now }})
	s := a.Session(access.Policy{Grants: access.Grants{Artifacts: true}}.Always, nil)
	handle := `{"handle":1}`
	for _, op := range []*access.Operation{
		{Kind: access.KindArtifactCreate, Head: []byte(`{}`)},
		{Kind: access.KindArtifactWrite, Head: []byte(handle), Body: []byte("x")},
		{Kind: access.KindArtifactCommit, Head: []byte(handle)},
	} {
		if answer := s.Do(t.Context(), op); answer.Fault != nil {
			t.Fatal(answer.Fault)
		}
	}
	sweep := func(want int) {
		t.Helper()
		now = now.Add(2 * artifacts.Grace)
		swept, err := a.Sweep(t.Context(), func(string) (bool, error) { return false, nil }, now)
		if err != nil || swept.Artifacts != want {
			t.Errorf("%+v, %v, want %d artifacts", swept, err, want)
		}
	}
	sweep(0)
	now = now.Add(artifacts.Grace)
	s.Close(t.Context())
	now = now.Add(-2*artifacts.Grace + artifacts.Grace/2) // half of the grace after the end
	sweep(0)
	sweep(1)
}
