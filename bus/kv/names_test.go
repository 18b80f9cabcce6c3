package kv_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run/access"
)

var (
	formOfKey    = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`) // of nats.go, without its empty tokens
	formOfBucket = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)
)

// FuzzNames compares the checks with the forms that are documented, and with what the server
// takes for one subject.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "a.b", ".", "a.", ".a", "a..b", "*", ">", "a.>", "..", "a b", "a\r\n", "\x00", "ä", "\xff", "A/b=c_d-e", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := kv.CheckKey(name) == "", formOfKey.MatchString(name) && len(name) <= kv.MaxKey; got != want {
			t.Errorf("key %q is accepted: %t, want %t", name, got, want)
		}
		if got, want := kv.CheckBucket(name) == "", formOfBucket.MatchString(name); got != want {
			t.Errorf("bucket %q is accepted: %t, want %t", name, got, want)
		}
		if kv.CheckKey(name) == "" && !server.IsValidLiteralSubject("$KV.FH_KV_b."+name) {
			t.Errorf("key %q is no part of a subject", name)
		}
	})
}

// FuzzOperation has operations without a grant: none of them is performed.
func FuzzOperation(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.kind, []byte(c.head), []byte(nil))
	}
	f.Add("kv.put", []byte(`{"bucket":"counters","key":"k","revision":18446744073709551615,"ttl_ms":1}`), []byte("x"))
	s := session(f, access.Policy{})
	f.Fuzz(func(t *testing.T, kind string, head, body []byte) {
		a := s.Do(t.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(head), Body: body})
		if a.Fault == nil || !json.Valid(a.Head) {
			t.Errorf("%s %s: %s", kind, head, a.Head)
			return
		}
		switch a.Fault.Code {
		case access.CodeInvalid, access.CodeDenied, access.CodeTooLarge:
		default:
			t.Errorf("%s %s: %+v", kind, head, a.Fault)
		}
	})
}

// TestOtherAccounts has the operator's account reach for a bucket.
func TestOtherAccounts(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	s := open(t, kv.Config{Conn: connect(t, server)}).Session(granted.Always)
	must(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, []byte("own"))
	app, err := server.ConnectApp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	if _, err := bustest.JetStream(t, app).KeyValue(t.Context(), "FH_KV_counters"); err == nil {
		t.Error("the operator's account has the bucket")
	}
	if err := app.Publish("$KV.FH_KV_counters.k", []byte("foreign")); err != nil {
		t.Fatal(err)
	}
	if err := app.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, value := must(t, s, "kv.get", `{"bucket":"counters","key":"k"}`, nil); string(value) != "own" {
		t.Errorf("the value is %q", value)
	}
}
