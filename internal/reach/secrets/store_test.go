package secrets_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/internal/testkit/vaulttest"
	"github.com/flowhost/flowhost/run/access"
)

func TestValuesAreKeptForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, secrets.Config{})
		r.declare("token", access.Secret{Env: "TOKEN"})
		r.declare("the same", access.Secret{Env: "TOKEN"})
		r.setenv("TOKEN", "first")
		r.wants("token", "first")
		r.setenv("TOKEN", "second")
		time.Sleep(time.Minute - time.Nanosecond)
		r.wants("the same", "first")
		if n := r.lookups(); n != 1 {
			t.Errorf("%d lookups", n)
		}
		time.Sleep(time.Nanosecond)
		r.wants("token", "second")

		r.setenv("TOKEN", "third")
		r.Invalidate()
		r.wants("token", "third")
		if n := r.lookups(); n != 3 {
			t.Errorf("%d lookups", n)
		}
	})
}

func TestValuesLeaveMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, secrets.Config{})
		for i, name := range []string{"one", "two", "three"} {
			r.declare(name, access.Secret{Env: name})
			r.setenv(name, "value")
			r.wants(name, "value")
			if n := secrets.Cached(r.Store); n != i+1 {
				t.Fatalf("%d are cached, want %d", n, i+1)
			}
			time.Sleep(10 * time.Second)
		}
		// They were read 30, 20 and 10 seconds ago.
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{30*time.Second - time.Nanosecond, 3}, {time.Nanosecond, 2}, {10 * time.Second, 1}, {10 * time.Second, 0}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if n := secrets.Cached(r.Store); n != step.want {
				t.Errorf("%d are cached, want %d", n, step.want)
			}
		}
	})
}

func TestFailuresAreKeptForSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, secrets.Config{})
		r.declare("token", access.Secret{Env: "TOKEN"})
		failing := func(lookups int) {
			t.Helper()
			if _, err := r.Resolve(t.Context(), "flow", "token"); err == nil || r.lookups() != lookups {
				t.Errorf("%v, %d lookups, want %d", err, r.lookups(), lookups)
			}
		}
		failing(1)
		r.setenv("TOKEN", "value")
		time.Sleep(5*time.Second - time.Nanosecond)
		failing(1)
		if err := r.Check(t.Context(), "flow", "token"); err != nil || r.lookups() != 2 {
			t.Errorf("a check does not look again: %v", err)
		}
		r.wants("token", "value")
	})
}

func TestOneLookupForMany(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "", nil)
	server.Put("app", map[string]any{"key": planted})
	r := newVaultRig(t, server, "")
	r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
	entered, release := server.Hold()
	defer release()

	ctx, cancel := context.WithCancel(t.Context())
	first := r.later(ctx, "token")
	<-entered
	var others []<-chan error
	for range 50 {
		others = append(others, r.later(t.Context(), "token"))
	}
	cancel()
	if fault, ok := (<-first).(*access.Fault); !ok || fault.Code != access.CodeCanceled {
		t.Errorf("the first one, which was canceled: %+v", fault)
	}
	release()
	for _, done := range others {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := server.Requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "", nil)
	r := newVaultRig(t, server, "")
	r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
	_, release := server.Hold()
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if fault, ok := (<-r.later(ctx, "token")).(*access.Fault); !ok || fault.Code != access.CodeTimeout {
		t.Errorf("%+v", fault)
	}
}

func TestInvalidateDuringLookup(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "", nil)
	server.Put("app", map[string]any{"key": "old value"})
	r := newVaultRig(t, server, "")
	r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
	entered, release := server.Hold()
	defer release()
	first := r.later(t.Context(), "token")
	<-entered
	r.Invalidate()
	second := r.later(t.Context(), "token")
	<-entered // it does not join the lookup from before
	release()
	for _, done := range []<-chan error{first, second} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestCloseEndsLookups(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "", nil)
	r := newVaultRig(t, server, "")
	r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
	entered, release := server.Hold()
	defer release()
	done := r.later(t.Context(), "token")
	<-entered
	var all sync.WaitGroup
	for range 2 {
		all.Go(r.Close)
	}
	all.Wait()
	if _, ok := (<-done).(*access.Fault); !ok {
		t.Error("the lookup has not failed")
	}
	if fault, ok := (<-r.later(t.Context(), "token")).(*access.Fault); !ok || fault.Code != access.CodeCanceled {
		t.Errorf("after Close: %+v", fault)
	}
	if n := secrets.Cached(r.Store); n != 0 {
		t.Errorf("%d are cached", n)
	}
}
