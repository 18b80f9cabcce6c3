package journal_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/internal/testkit/storetest"
)

func openObjects(t testing.TB, nc *nats.Conn, bucket string, cfg journal.ObjectsConfig) *journal.Objects {
	t.Helper()
	o, err := journal.NewObjects(t.Context(), nc, bucket, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjects(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{bus.BucketSnapshots, bus.BucketBlobs} {
		t.Run(bucket, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) (storetest.Store, func() storetest.Store) {
				s := bustest.StartServer(t, natsd.Config{})
				return openObjects(t, bustest.ConnectJournal(t, s), bucket, journal.ObjectsConfig{}), func() storetest.Store {
					nc, err := s.ConnectEngine()
					if err != nil {
						t.Fatal(err)
					}
					return openObjects(t, nc, bucket, journal.ObjectsConfig{})
				}
			})
		})
	}
}

// What the NATS tools read and write is the same.
func TestObjectsAreObjectsOfNATS(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	ours := openObjects(t, nc, bus.BucketBlobs, journal.ObjectsConfig{})
	theirs, err := bustest.JetStream(t, nc).ObjectStore(t.Context(), bus.BucketBlobs)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"large": bytes.Repeat([]byte("x"), 3<<20), "empty": nil} {
		if err := ours.Put(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
		if got, err := theirs.GetBytes(t.Context(), name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("nats.go reads %d bytes of %s, %v", len(got), name, err)
		}
		if _, err := theirs.PutBytes(t.Context(), name+"2", data); err != nil {
			t.Fatal(err)
		}
		if got, err := ours.Get(t.Context(), name+"2"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("Get gave %d bytes of %s2, %v", len(got), name, err)
		}
	}
	if err := theirs.Delete(t.Context(), "large2"); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Get(t.Context(), "large2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of an object that nats.go deleted = %v, want fs.ErrNotExist", err)
	}
	again := openObjects(t, nc, bus.BucketBlobs, journal.ObjectsConfig{})
	if names, err := again.List(t.Context()); err != nil || !slices.Equal(names, []string{"empty", "empty2", "large"}) {
		t.Errorf("List = %q, %v", names, err)
	}
}

func TestObjectsDamaged(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), "OBJ_"+bus.BucketBlobs)
	if err != nil {
		t.Fatal(err)
	}
	o := openObjects(t, nc, bus.BucketBlobs, journal.ObjectsConfig{})
	for name, hurt := range map[string]func(content, label string) error{
		"missing part": func(content, _ string) error {
			msg, err := stream.GetLastMsgForSubject(t.Context(), content)
			if err != nil {
				return err
			}
			return stream.DeleteMsg(t.Context(), msg.Sequence)
		},
		"further part": func(content, _ string) error {
			_, err := nc.Request(content, []byte("more"), bustest.Patience)
			return err
		},
		"other bytes": func(content, _ string) error {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(content)); err != nil {
				return err
			}
			for range 3 {
				if _, err := nc.Request(content, bytes.Repeat([]byte("y"), 1<<20), bustest.Patience); err != nil {
					return err
				}
			}
			return nil
		},
		"description": func(_, label string) error {
			_, err := nc.Request(label, []byte("{"), bustest.Patience)
			return err
		},
	} {
		data := bytes.Repeat([]byte("x"), 3<<20)
		if err := o.Put(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
		content, label := subjectsOf(t, stream, name)
		if err := hurt(content, label); err != nil {
			t.Fatal(err)
		}
		_, err := o.Get(t.Context(), name)
		var damaged *journal.ObjectError
		if name == "further part" {
			if err != nil {
				t.Errorf("%s: Get = %v", name, err)
			}
		} else if !errors.As(err, &damaged) || damaged.Name != name || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: Get = %v, want an *ObjectError", name, err)
		}
		if err := o.Put(t.Context(), name, data); err != nil {
			t.Errorf("%s: Put in its place = %v", name, err)
		}
		if got, err := o.Get(t.Context(), name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: Get after that = %d bytes, %v", name, len(got), err)
		}
	}
}

// subjectsOf finds the subjects of an object.
func subjectsOf(t *testing.T, stream jetstream.Stream, name string) (content, label string) {
	t.Helper()
	label = "$O." + bus.BucketBlobs + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
	msg, err := stream.GetLastMsgForSubject(t.Context(), label)
	if err != nil {
		t.Fatal(err)
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(msg.Data, &info); err != nil {
		t.Fatal(err)
	}
	return "$O." + bus.BucketBlobs + ".C." + info.NUID, label
}

func TestObjectsLeftovers(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	o := openObjects(t, nc, bus.BucketBlobs, journal.ObjectsConfig{})
	if err := o.Put(t.Context(), "whole", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	// A process that died in the middle of Put left the content alone.
	for range 2 {
		if _, err := nc.Request("$O."+bus.BucketBlobs+".C.unfinished", []byte("part"), bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		grace time.Duration
		left  uint64 // messages
	}{{0, 4}, {time.Hour, 4}, {-1, 2}} {
		o = openObjects(t, nc, bus.BucketBlobs, journal.ObjectsConfig{Grace: tt.grace})
		if got := count(t, nc, "OBJ_"+bus.BucketBlobs); got != tt.left {
			t.Errorf("grace %s leaves %d messages, want %d", tt.grace, got, tt.left)
		}
	}
	if got, err := o.Get(t.Context(), "whole"); err != nil || string(got) != "whole" {
		t.Errorf("Get = %q, %v", got, err)
	}
	// What is replaced or deleted leaves nothing.
	if err := o.Put(t.Context(), "whole", bytes.Repeat([]byte("x"), 3<<20)); err != nil {
		t.Fatal(err)
	}
	if got := count(t, nc, "OBJ_"+bus.BucketBlobs); got != 4 {
		t.Errorf("after the replacement there are %d messages, want 4", got)
	}
	if err := o.Delete(t.Context(), "whole"); err != nil {
		t.Fatal(err)
	}
	if got := count(t, nc, "OBJ_"+bus.BucketBlobs); got != 0 {
		t.Errorf("after the deletion there are %d messages, want none", got)
	}
}

func count(t *testing.T, nc *nats.Conn, stream string) uint64 {
	t.Helper()
	s, err := bustest.JetStream(t, nc).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// An object that does not fit leaves the one before as it was.
func TestObjectsFull(t *testing.T) {
	t.Parallel()
	nc, err := bustest.StartServer(t, natsd.Config{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{SnapshotBytes: 4 << 20}); err != nil {
		t.Fatal(err)
	}
	o := openObjects(t, nc, bus.BucketSnapshots, journal.ObjectsConfig{})
	data := bytes.Repeat([]byte("x"), 2<<20)
	if err := o.Put(t.Context(), "it", data); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{3 << 20, 6 << 20} {
		if err := o.Put(t.Context(), "it", make([]byte, size)); !errors.Is(err, journal.ErrBucketFull) {
			t.Errorf("Put of %d bytes = %v, want ErrBucketFull", size, err)
		}
	}
	if got, err := o.Get(t.Context(), "it"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("Get = %d bytes, %v", len(got), err)
	}
	if err := o.Put(t.Context(), "small", make([]byte, 1<<20)); err != nil {
		t.Errorf("Put of what fits = %v", err)
	}
}

func TestObjectsNeedTheirBucket(t *testing.T) {
	t.Parallel()
	nc, err := bustest.StartServer(t, natsd.Config{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.NewObjects(t.Context(), nc, bus.BucketBlobs, journal.ObjectsConfig{}); err == nil {
		t.Error("NewObjects does not miss the stream")
	}
}

func TestObjectsWaitForTheServer(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	o := openObjects(t, bustest.ConnectJournal(t, s), bus.BucketBlobs, journal.ObjectsConfig{Timeout: time.Second})
	for i := range 10 {
		data := bytes.Repeat([]byte{byte(i)}, 2<<20)
		restarted := make(chan error, 1)
		go func() { restarted <- s.Restart(t.Context()) }()
		if err := o.Put(t.Context(), "it", data); err != nil {
			t.Fatal(err)
		}
		if got, err := o.Get(t.Context(), "it"); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("Get = %d bytes, %v", len(got), err)
		}
		if err := <-restarted; err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	bustest.StopServer(t, s)
	if err := o.Put(ctx, "it", nil); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Put without a server = %v", err)
	}
}

func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	for bucket, size := range map[string]int64{bus.BucketSnapshots: 1 << 30, bus.BucketBlobs: 2 << 30} {
		stream, err := bustest.JetStream(t, nc).Stream(t.Context(), "OBJ_"+bucket)
		if err != nil {
			t.Fatal(err)
		}
		got := stream.CachedInfo().Config
		if got.MaxBytes != size || got.Discard != jetstream.DiscardNew || got.MaxAge != 0 || got.Description == "" ||
			got.Storage != jetstream.FileStorage || !got.AllowRollup || !got.AllowDirect || got.MaxMsgsPerSubject != -1 {
			t.Errorf("bucket %s: %+v", bucket, got)
		}
	}
	// What they hold is not dropped for a smaller limit.
	o := openObjects(t, nc, bus.BucketBlobs, journal.ObjectsConfig{})
	if err := o.Put(t.Context(), "it", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	var refused *bus.ProvisionError
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{BlobBytes: 1 << 19}); !errors.As(err, &refused) {
		t.Errorf("ProvisionJournal = %v, want a *ProvisionError", err)
	}
	if _, err := o.Get(t.Context(), "it"); err != nil {
		t.Error(err)
	}
}
