package natsd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

func TestServerFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "data")
	bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	for name, want := range map[string]os.FileMode{".": 0o700, natsd.ClientContext: 0o600, natsd.OperatorContext: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s = %o, want %o", name, got, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".context-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestServerKeepsCredentialsAndJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	before := []bustest.Credentials{bustest.ReadCredentials(t, dir, natsd.ClientContext), bustest.ReadCredentials(t, dir, natsd.OperatorContext)}
	j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{})
	revision, err := j.Append(t.Context(), 0, []byte("kept"))
	if err != nil {
		t.Fatal(err)
	}
	bustest.StopServer(t, s)

	s = bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	after := []bustest.Credentials{bustest.ReadCredentials(t, dir, natsd.ClientContext), bustest.ReadCredentials(t, dir, natsd.OperatorContext)}
	for i := range before {
		if len(before[i].Password) < 26 || before[i].User != after[i].User || before[i].Password != after[i].Password {
			t.Errorf("credentials of %s changed over the restart", before[i].User)
		}
		bustest.Dial(t, after[i])
		if after[i].URL != s.URL() {
			t.Errorf("url = %q, want %q", after[i].URL, s.URL())
		}
	}
	var kept []string
	err = bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{}).Replay(t.Context(), 0, func(r uint64, commit []byte) error {
		if r != revision {
			t.Errorf("revision = %d, want %d", r, revision)
		}
		kept = append(kept, string(commit))
		return nil
	})
	if err != nil || len(kept) != 1 || kept[0] != "kept" {
		t.Errorf("journal after the restart: %q, %v", kept, err)
	}
}

func TestServerReplacesExposedPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	exposed := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	bustest.StopServer(t, s)
	file := filepath.Join(dir, natsd.ClientContext)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}

	var log bustest.LogLines
	bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0", Log: log.Logger()})
	replaced := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	if replaced.Password == exposed.Password {
		t.Error("the password that others could read is still in use")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	if log.Count("others could read") != 1 {
		t.Error("the log does not say why the password changed")
	}
}

func TestServerRefusesDamagedCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bustest.StopServer(t, bustest.StartServer(t, natsd.Config{Dir: dir}))
	if err := os.WriteFile(filepath.Join(dir, natsd.ClientContext), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), natsd.ClientContext) {
		t.Errorf("StartServer = %v, want an error that names the file", err)
	}
}

func TestServerLocksItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir})
	_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true})
	var locked *natsd.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.Dir != dir {
		t.Fatalf("second StartServer = %v, want a *LockedError with pid %d", err, os.Getpid())
	}
	host, err := os.Hostname()
	if err != nil || locked.Host != host || time.Since(locked.Since) > time.Minute || locked.Since.IsZero() {
		t.Errorf("%+v does not say who has the folder, on %s", locked, host)
	}
	for _, part := range []string{fmt.Sprint("process ", os.Getpid()), host, locked.Since.Format(time.DateTime), dir} {
		if !strings.Contains(locked.Error(), part) {
			t.Errorf("%q does not say %q", locked, part)
		}
	}
	bustest.StopServer(t, s)
	bustest.StartServer(t, natsd.Config{Dir: dir})
}

func TestServerTakesFreePortOnlyUnasked(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", natsd.DefaultListen); err == nil {
		defer l.Close()
	}
	s, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer bustest.StopServer(t, s)
	if !strings.HasPrefix(s.URL(), "nats://127.0.0.1:") || strings.HasSuffix(s.URL(), ":4222") {
		t.Errorf("URL = %s, want another loopback port than 4222", s.URL())
	}
	asked := strings.TrimPrefix(s.URL(), "nats://")
	if second, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Listen: asked}); err == nil {
		bustest.StopServer(t, second)
		t.Errorf("a server took %s, which was asked for and is in use", asked)
	}
}

func TestServerConfigErrors(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]natsd.Config{
		"public address": {Listen: "0.0.0.0:4222"},
		"other host":     {Listen: "example.com:4222"},
		"no port":        {Listen: "127.0.0.1"},
		"bad port":       {Listen: "127.0.0.1:x"},
		"sync mode":      {Sync: "sometimes", NoListen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Dir = t.TempDir()
			if s, err := natsd.Start(t.Context(), cfg); err == nil {
				bustest.StopServer(t, s)
				t.Error("StartServer took the configuration")
			}
		})
	}
}

func TestServerWithoutListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Sync: natsd.SyncRelaxed})
	bustest.Connect(t, s)
	if err := s.Sync(); err != nil {
		t.Error(err)
	}
	if s.URL() != "" {
		t.Errorf("URL = %q, want none", s.URL())
	}
	if _, err := os.Stat(filepath.Join(dir, natsd.ClientContext)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a context file was written for a server that nobody can reach: %v", err)
	}
}

func TestServerRefusesAnonymous(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	c := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	for name, opt := range map[string]nats.Option{
		"anonymous":      nats.Name("nobody"),
		"wrong password": nats.UserInfo(c.User, c.Password+"x"),
		"other user":     nats.UserInfo("root", c.Password),
	} {
		nc, err := nats.Connect(s.URL(), opt, nats.NoReconnect())
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: Connect = %v, want ErrAuthorization", name, err)
		}
	}
}

func TestClientPermissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bustest.LogLines
	s := bustest.StartServer(t, natsd.Config{
		Dir: dir, Listen: "127.0.0.1:0", Log: log.Logger(),
		ClientSubjects: []string{"orders.>", ">", "fh.v1.run.*.*.finished"},
	})
	bustest.Connect(t, s)
	bustest.ConnectJournal(t, s)
	nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))

	publish := map[string]bool{
		"fh.v1.trigger.a": true, "fh.v1.api.run.a": true, "fh.v1.api.cancel": true, "orders.new": true,
		"fh.v1.journal.0": false, "fh.v1.run.a.b.finished": false, "fh.v1.deadletter.a": false, "other": false,
		"$JS.API.STREAM.CREATE.X": false, "$JS.API.STREAM.DELETE.FH_EVENTS": false, "$JS.API.STREAM.PURGE.FH_TRIGGERS": false,
		"$JS.API.STREAM.UPDATE.FH_JOURNAL": false, "$JS.API.STREAM.MSG.DELETE.FH_EVENTS": false,
		"$JS.API.STREAM.MSG.GET.FH_JOURNAL": false, "$JS.API.CONSUMER.CREATE.FH_TRIGGERS": false, "$SYS.REQ.SERVER.PING": false,
	}
	for subject, allowed := range publish {
		denied := bustest.Refusal(t, nc, func() error { return nc.Publish(subject, nil) })
		if denied == allowed {
			t.Errorf("publish on %s: denied is %t", subject, denied)
		}
	}
	subscribe := map[string]bool{
		"_INBOX_client.x.>": true, "fh.v1.run.>": true, "_INBOX.x.>": false, "_INBOX_engine.>": false, "_INBOX_operator.>": false,
		"fh.v1.journal.>": false, "fh.v1.trigger.>": false, ">": false, "orders.new": false, "$SYS.>": false,
	}
	for subject, allowed := range subscribe {
		denied := bustest.Refusal(t, nc, func() error { _, err := nc.SubscribeSync(subject); return err })
		if denied == allowed {
			t.Errorf("subscribe to %s: denied is %t", subject, denied)
		}
	}
	if log.Count("may not publish on a subject that covers") != 2 {
		t.Error("the log does not name the two subjects that were not granted")
	}
}

func TestShutdownEndsWithContext(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown = %v", err)
	}
	bustest.StopServer(t, s)
}

// What is kept in memory is gone with the server, and leaves nothing behind.
func TestMemoryGoesWithTheServer(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := t.TempDir()
	for range 2 {
		server, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true, Sync: natsd.SyncMemory})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := server.ConnectEngine()
		if err != nil {
			t.Fatal(err)
		}
		if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{}); err != nil {
			t.Fatal(err)
		}
		journal, err := journal.New(t.Context(), nc, 0, journal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Append(t.Context(), 0, []byte("first")); err != nil {
			t.Fatalf("the journal is not empty: %v", err)
		}
		if err := server.Sync(); err != nil {
			t.Error(err)
		}
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{temporary, filepath.Join(dir, "jetstream")} {
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%d entries are left in %s", len(left), folder)
		}
	}
}
