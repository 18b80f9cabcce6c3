package kv_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run/access"
)

// granted is a policy with two buckets.
var granted = access.Policy{Grants: access.Grants{KV: map[string]access.Mode{"counters": access.ReadWrite, "settings": access.ReadOnly}}}

func connect(t testing.TB, s *natsd.Server) *nats.Conn {
	t.Helper()
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func open(t testing.TB, cfg kv.Config) *kv.Store {
	t.Helper()
	store, err := kv.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// session gives a session on a server of its own.
func session(t testing.TB, policy access.Policy) *kv.Session {
	t.Helper()
	return open(t, kv.Config{Conn: connect(t, bustest.StartServer(t, natsd.Config{}))}).Session(policy.Always)
}

func do(t testing.TB, s *kv.Session, kind, head string, body []byte) access.Answer {
	t.Helper()
	return s.Do(t.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(head), Body: body})
}

// must performs an operation that succeeds, and decodes the head of its answer.
func must(t testing.TB, s *kv.Session, kind, head string, body []byte) (revision uint64, value []byte) {
	t.Helper()
	a := do(t, s, kind, head, body)
	if a.Fault != nil {
		t.Fatalf("%s %s: %+v", kind, head, a.Fault)
	}
	var h struct{ Revision uint64 }
	if err := json.Unmarshal(a.Head, &h); err != nil {
		t.Fatal(err)
	}
	return h.Revision, a.Body
}

// fails performs an operation that fails with a code.
func fails(t testing.TB, s *kv.Session, code, kind, head string, body []byte) *access.Fault {
	t.Helper()
	a := do(t, s, kind, head, body)
	if a.Fault == nil || a.Fault.Code != code {
		t.Fatalf("%s %s: %+v, want code %s", kind, head, a.Fault, code)
	}
	var f access.Fault
	if err := json.Unmarshal(a.Head, &f); err != nil || f != *a.Fault {
		t.Fatalf("the head is %s (%v), want the fault", a.Head, err)
	}
	return a.Fault
}

func TestGetPutDelete(t *testing.T) {
	t.Parallel()
	s := session(t, granted)
	fails(t, s, access.CodeNotFound, "kv.get", `{"bucket":"counters","key":"a.b"}`, nil)
	first, _ := must(t, s, "kv.put", `{"bucket":"counters","key":"a.b"}`, []byte("one"))
	if revision, value := must(t, s, "kv.get", `{"bucket":"counters","key":"a.b"}`, nil); revision != first || string(value) != "one" {
		t.Errorf("got revision %d and %q, want %d and one", revision, value, first)
	}
	second, _ := must(t, s, "kv.put", `{"bucket":"counters","key":"a.b"}`, nil)
	if revision, value := must(t, s, "kv.get", `{"bucket":"counters","key":"a.b"}`, nil); revision != second || len(value) != 0 {
		t.Errorf("got revision %d and %q, want %d and an empty value", revision, value, second)
	}
	must(t, s, "kv.delete", `{"bucket":"counters","key":"a.b"}`, nil)
	fails(t, s, access.CodeNotFound, "kv.get", `{"bucket":"counters","key":"a.b"}`, nil)
	must(t, s, "kv.delete", `{"bucket":"counters","key":"a.b"}`, nil)
}

func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	s := session(t, granted)
	put := func(revision uint64) string {
		return fmt.Sprintf(`{"bucket":"counters","key":"k","revision":%d}`, revision)
	}
	fails(t, s, access.CodeConflict, "kv.put", put(7), nil)
	first, _ := must(t, s, "kv.put", put(0), []byte("1"))
	fails(t, s, access.CodeConflict, "kv.put", put(0), []byte("2"))
	second, _ := must(t, s, "kv.put", put(first), []byte("2"))
	fails(t, s, access.CodeConflict, "kv.put", put(first), []byte("3"))
	fails(t, s, access.CodeConflict, "kv.delete", put(first), nil)
	marker, _ := must(t, s, "kv.delete", put(second), nil)
	if again, _ := must(t, s, "kv.put", put(0), []byte("4")); again <= marker {
		t.Errorf("revision %d after %d", again, marker)
	}
	fails(t, s, access.CodeConflict, "kv.put", put(0), []byte("5"))
}

// TestCompareAndSetCounts has sessions count together: no increment is lost.
func TestCompareAndSetCounts(t *testing.T) {
	t.Parallel()
	store := open(t, kv.Config{Conn: connect(t, bustest.StartServer(t, natsd.Config{}))})
	const sessions, each = 8, 25
	done := make(chan error, sessions)
	for range sessions {
		s := store.Session(granted.Always)
		go func() { done <- count(t.Context(), s, each) }()
	}
	for range sessions {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, value := must(t, store.Session(granted.Always), "kv.get", `{"bucket":"counters","key":"n"}`, nil); string(value) != fmt.Sprint(sessions*each) {
		t.Errorf("counted to %s, want %d", value, sessions*each)
	}
}

func count(ctx context.Context, s *kv.Session, times int) error {
	for times > 0 {
		var h struct{ Revision uint64 }
		n := 0
		a := s.Do(ctx, &access.Operation{Kind: access.KindKVGet, Head: json.RawMessage(`{"bucket":"counters","key":"n"}`)})
		if a.Fault == nil {
			if err := json.Unmarshal(a.Head, &h); err != nil {
				return err
			}
			if _, err := fmt.Sscan(string(a.Body), &n); err != nil {
				return err
			}
		} else if a.Fault.Code != access.CodeNotFound {
			return a.Fault
		}
		head := fmt.Sprintf(`{"bucket":"counters","key":"n","revision":%d}`, h.Revision)
		a = s.Do(ctx, &access.Operation{Kind: access.KindKVPut, Head: json.RawMessage(head), Body: fmt.Append(nil, n+1)})
		if a.Fault == nil {
			times--
		} else if a.Fault.Code != access.CodeConflict {
			return a.Fault
		}
	}
	return nil
}

// TestExpiry waits for the server's own message that a key has expired.
func TestExpiry(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	s := open(t, kv.Config{Conn: nc}).Session(granted.Always)
	must(t, s, "kv.put", `{"bucket":"counters","key":"stays"}`, []byte("x"))
	must(t, s, "kv.put", `{"bucket":"counters","key":"goes","ttl_ms":1}`, []byte("x"))
	bucket, err := bustest.JetStream(t, nc).KeyValue(t.Context(), "FH_KV_counters")
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := bucket.Watch(t.Context(), "goes", jetstream.UpdatesOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := watcher.Stop(); err != nil {
			t.Error(err)
		}
	}()
	select {
	case entry := <-watcher.Updates():
		if entry.Operation() == jetstream.KeyValuePut {
			t.Fatalf("the key was put, want it to expire")
		}
	case <-time.After(bustest.Patience):
		t.Fatal("the key does not expire")
	}
	fails(t, s, access.CodeNotFound, "kv.get", `{"bucket":"counters","key":"goes"}`, nil)
	must(t, s, "kv.get", `{"bucket":"counters","key":"stays"}`, nil)
	must(t, s, "kv.put", `{"bucket":"counters","key":"goes","revision":0}`, nil)
}

func TestList(t *testing.T) {
	t.Parallel()
	s := session(t, granted)
	type entry struct {
		Key      string
		Revision uint64
	}
	list := func(head string) (keys []entry, more bool) {
		t.Helper()
		a := do(t, s, "kv.list", head, nil)
		if a.Fault != nil {
			t.Fatalf("%s: %+v", head, a.Fault)
		}
		var h struct {
			Count int
			More  bool
		}
		if err := json.Unmarshal(a.Head, &h); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(a.Body, &keys); err != nil || len(keys) != h.Count {
			t.Fatalf("%s with count %d: %v", a.Body, h.Count, err)
		}
		return keys, h.More
	}
	if keys, more := list(`{"bucket":"counters"}`); len(keys) > 0 || more {
		t.Errorf("got %v, want nothing of a bucket that does not exist", keys)
	}
	revisions := map[string]uint64{}
	const total = 1200
	for i := range total {
		key := fmt.Sprintf("n.%04d", (i*7)%total)
		revisions[key], _ = must(t, s, "kv.put", fmt.Sprintf(`{"bucket":"counters","key":%q}`, key), []byte("value"))
	}
	must(t, s, "kv.put", `{"bucket":"counters","key":"other"}`, nil)
	must(t, s, "kv.put", `{"bucket":"counters","key":"n"}`, nil)
	must(t, s, "kv.delete", `{"bucket":"counters","key":"n.0003"}`, nil)

	var all []entry
	pages := 0
	for after, more := "", true; more; pages++ {
		var keys []entry
		keys, more = list(fmt.Sprintf(`{"bucket":"counters","prefix":"n.","after":%q,"limit":500}`, after))
		all = append(all, keys...)
		after = keys[len(keys)-1].Key
	}
	if len(all) != total-1 || pages != 3 {
		t.Fatalf("%d keys on %d pages, want %d on 3", len(all), pages, total-1)
	}
	for i, e := range all {
		if i > 0 && e.Key <= all[i-1].Key || e.Revision != revisions[e.Key] {
			t.Fatalf("key %d is %v after %v, with revision %d", i, e, all[max(i-1, 0)], revisions[e.Key])
		}
	}
	if keys, more := list(`{"bucket":"counters","prefix":"n.110"}`); len(keys) != 10 || more {
		t.Errorf("got %v, want the ten keys that begin with n.110", keys)
	}
	if keys, _ := list(`{"bucket":"counters","prefix":"o"}`); len(keys) != 1 || keys[0].Key != "other" {
		t.Errorf("got %v, want other", keys)
	}
	if keys, more := list(`{"bucket":"counters"}`); len(keys) != kv.MaxList || !more || keys[0].Key != "n" {
		t.Errorf("got %d keys from %v, want the first %d", len(keys), keys[0], kv.MaxList)
	}
}

// TestListOfLongKeys has the answer stay within the bound of a body.
func TestListOfLongKeys(t *testing.T) {
	t.Parallel()
	s := session(t, granted)
	long := strings.Repeat("k", kv.MaxKey-4)
	for i := range kv.MaxList {
		must(t, s, "kv.put", fmt.Sprintf(`{"bucket":"counters","key":"%s%04d"}`, long, i), nil)
	}
	a := do(t, s, "kv.list", `{"bucket":"counters"}`, nil)
	if a.Fault != nil || len(a.Body) > ops.MaxBody || !bytes.Contains(a.Head, []byte(`"more":true`)) {
		t.Errorf("%d bytes, %s, %+v; want a page within %d and more", len(a.Body), a.Head, a.Fault, ops.MaxBody)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	store := open(t, kv.Config{Conn: connect(t, s)})
	modes := func(pairs ...string) map[string]access.Mode {
		m := map[string]access.Mode{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = access.Mode(pairs[i+1])
		}
		return m
	}
	allow := func(m map[string]access.Mode) *access.Allow {
		return &access.Allow{Pattern: "orders*", KV: m, From: "flowhost.hcl:12"}
	}
	tests := []struct {
		name        string
		grant       map[string]access.Mode
		allow       *access.Allow
		read, write bool
		rule        string // of what is refused
	}{
		{"nothing", nil, nil, false, false, ops.RuleGrant},
		{"another bucket", modes("b", "rw"), nil, false, false, ops.RuleGrant},
		{"a star is no bucket", modes("*", "rw"), nil, false, false, ops.RuleGrant},
		{"a mode that does not exist", modes("a", "r"), nil, false, false, ops.RuleGrant},
		{"an empty mode", modes("a", ""), nil, false, false, ops.RuleGrant},
		{"ro", modes("a", "ro"), nil, true, false, ops.RuleGrant},
		{"rw", modes("a", "rw"), nil, true, true, ""},
		{"an allow block without buckets", modes("a", "rw"), allow(nil), false, false, ops.RuleAllow},
		{"allowed for reading", modes("a", "rw"), allow(modes("a", "ro")), true, false, ops.RuleAllow},
		{"any bucket", modes("a", "rw"), allow(modes("*", "rw")), true, true, ""},
		{"the name before the star", modes("a", "rw"), allow(modes("*", "rw", "a", "ro")), true, false, ops.RuleAllow},
		{"allowed and not granted", nil, allow(modes("*", "rw")), false, false, ops.RuleGrant},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := store.Session(access.Policy{Grants: access.Grants{KV: test.grant}, Allow: test.allow}.Always)
			for kind, head := range map[string]string{
				"kv.get": `{"bucket":"a","key":"k"}`, "kv.list": `{"bucket":"a"}`,
				"kv.put": `{"bucket":"a","key":"k"}`, "kv.delete": `{"bucket":"a","key":"k"}`,
			} {
				may := test.write || test.read && (kind == "kv.get" || kind == "kv.list")
				a := do(t, s, kind, head, nil)
				denied := a.Fault != nil && a.Fault.Code == access.CodeDenied
				if denied == may {
					t.Errorf("%s: %+v, want that it may: %t", kind, a.Fault, may)
				}
				if denied && (a.Fault.Rule != test.rule || !strings.HasPrefix(a.Fault.Add, "kv = { a = ") || a.Fault.Target != "kv a") {
					t.Errorf("%s: %+v, want rule %q and the line to add", kind, a.Fault, test.rule)
				}
			}
		})
	}
}

// corpus is what no grant opens.
var corpus = []struct{ name, kind, head string }{
	{"bucket ..", "kv.get", `{"bucket":"..","key":"k"}`},
	{"bucket *", "kv.get", `{"bucket":"*","key":"k"}`},
	{"bucket >", "kv.put", `{"bucket":">","key":"k"}`},
	{"bucket with a dot", "kv.put", `{"bucket":"a.b","key":"k"}`},
	{"bucket in upper case", "kv.put", `{"bucket":"COUNTERS","key":"k"}`},
	{"bucket with a slash", "kv.put", `{"bucket":"a/b","key":"k"}`},
	{"bucket with a line break", "kv.put", `{"bucket":"a\r\nPUB x 1","key":"k"}`},
	{"bucket of 65 bytes", "kv.put", `{"bucket":"` + strings.Repeat("a", 65) + `","key":"k"}`},
	{"no bucket", "kv.put", `{"key":"k"}`},
	{"key >", "kv.get", `{"bucket":"counters","key":">"}`},
	{"key *", "kv.get", `{"bucket":"counters","key":"*"}`},
	{"key with > at its end", "kv.delete", `{"bucket":"counters","key":"a.>"}`},
	{"key with a dot at its start", "kv.put", `{"bucket":"counters","key":".a"}`},
	{"key with a dot at its end", "kv.put", `{"bucket":"counters","key":"a."}`},
	{"key .", "kv.put", `{"bucket":"counters","key":"."}`},
	{"key with an empty token", "kv.put", `{"bucket":"counters","key":"a..b"}`},
	{"key of 64 KB", "kv.put", `{"bucket":"counters","key":"` + strings.Repeat("k", 60_000) + `"}`},
	{"key of 1025 bytes", "kv.put", `{"bucket":"counters","key":"` + strings.Repeat("k", 1025) + `"}`},
	{"key with a space", "kv.put", `{"bucket":"counters","key":"a b"}`},
	{"key with a line break", "kv.put", `{"bucket":"counters","key":"a\r\nb"}`},
	{"key with a zero byte", "kv.put", `{"bucket":"counters","key":"a\u0000b"}`},
	{"key that is not ASCII", "kv.put", `{"bucket":"counters","key":"ä"}`},
	{"no key", "kv.put", `{"bucket":"counters"}`},
	{"prefix with >", "kv.list", `{"bucket":"counters","prefix":"a.>"}`},
	{"prefix *", "kv.list", `{"bucket":"counters","prefix":"*"}`},
	{"after with >", "kv.list", `{"bucket":"counters","after":">"}`},
	{"limit beyond the most", "kv.list", `{"bucket":"counters","limit":1001}`},
	{"limit below 0", "kv.list", `{"bucket":"counters","limit":-1}`},
	{"negative ttl", "kv.put", `{"bucket":"counters","key":"k","ttl_ms":-1}`},
	{"endless ttl", "kv.put", `{"bucket":"counters","key":"k","ttl_ms":9223372036854775807}`},
	{"negative revision", "kv.put", `{"bucket":"counters","key":"k","revision":-1}`},
	{"headers", "kv.put", `{"bucket":"counters","key":"k","headers":{"Nats-Rollup":["all"]}}`},
	{"ttl of a get", "kv.get", `{"bucket":"counters","key":"k","ttl_ms":5}`},
	{"no JSON", "kv.put", `{"bucket":`},
	{"two values", "kv.put", `{"bucket":"counters","key":"k"}{}`},
	{"an unknown kind", "kv.purge", `{"bucket":"counters","key":"k"}`},
}

// TestCorpus has each case refused before anything is sent.
func TestCorpus(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	nc := connect(t, server)
	s := open(t, kv.Config{Conn: nc}).Session(granted.Always)
	seen := bustest.ListenAll(t, server)
	for _, c := range corpus {
		fails(t, s, access.CodeInvalid, c.kind, c.head, nil)
	}
	fails(t, s, access.CodeInvalid, "kv.get", `{"bucket":"counters","key":"k"}`, []byte("body"))
	fails(t, s, access.CodeDenied, "kv.put", `{"bucket":"settings","key":"k"}`, nil)
	fails(t, s, access.CodeTooLarge, "kv.put", `{"bucket":"counters","key":"k"}`, make([]byte, ops.MaxBody+1))
	fails(t, s, access.CodeTooLarge, "kv.put", `{"bucket":"counters","key":"`+strings.Repeat("k", 70_000)+`"}`, nil)
	if got := seen(nc); len(got) > 0 {
		t.Errorf("messages were sent: %q", got)
	}
	must(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, nil)
	if got := seen(nc); len(got) == 0 {
		t.Error("a put is not seen: the test would prove nothing")
	}
}

// TestBurst puts more at once than the server keeps waiting for a stream.
func TestBurst(t *testing.T) {
	t.Parallel()
	store := open(t, kv.Config{Conn: connect(t, bustest.StartServer(t, natsd.Config{})), Timeout: bustest.Patience})
	value := make([]byte, ops.MaxBody)
	var puts sync.WaitGroup
	for i := range 80 {
		puts.Go(func() {
			head := fmt.Sprintf(`{"bucket":"counters","key":"k.%d","revision":0}`, i)
			a := store.Session(granted.Always).Do(t.Context(), &access.Operation{Kind: access.KindKVPut, Head: json.RawMessage(head), Body: value})
			if a.Fault != nil {
				t.Errorf("%+v", a.Fault)
			}
		})
	}
	puts.Wait()
}

func TestFullBucket(t *testing.T) {
	t.Parallel()
	s := open(t, kv.Config{Conn: connect(t, bustest.StartServer(t, natsd.Config{})), BucketBytes: 3 << 20}).Session(granted.Always)
	value := make([]byte, ops.MaxBody)
	for _, key := range []string{"a", "b"} {
		must(t, s, "kv.put", fmt.Sprintf(`{"bucket":"counters","key":%q}`, key), value)
	}
	f := fails(t, s, access.CodeTooLarge, "kv.put", `{"bucket":"counters","key":"c"}`, value)
	if !strings.Contains(f.Message, "delete") {
		t.Errorf("%q does not say what to do", f.Message)
	}
	must(t, s, "kv.delete", `{"bucket":"counters","key":"a"}`, nil)
	must(t, s, "kv.put", `{"bucket":"counters","key":"c"}`, value)
}

// TestRoomIsShared makes more buckets than the server can reserve the usual size for.
func TestRoomIsShared(t *testing.T) {
	t.Parallel()
	policy := access.Policy{Grants: access.Grants{KV: map[string]access.Mode{}}}
	for i := range 6 {
		policy.Grants.KV[fmt.Sprint("b", i)] = access.ReadWrite
	}
	s := open(t, kv.Config{Conn: connect(t, bustest.StartServer(t, natsd.Config{MaxStore: 3 << 30}))}).Session(policy.Always)
	for name := range policy.Grants.KV {
		must(t, s, "kv.put", fmt.Sprintf(`{"bucket":%q,"key":"k"}`, name), []byte("x"))
	}
}

func TestBucketIsResized(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	for _, want := range []int64{4 << 20, 8 << 20, 2 << 20} {
		s := open(t, kv.Config{Conn: nc, BucketBytes: want}).Session(granted.Always)
		must(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, nil)
		stream, err := bustest.JetStream(t, nc).Stream(t.Context(), "KV_FH_KV_counters")
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().Config.MaxBytes; got != want {
			t.Errorf("the bucket has %d bytes, want %d", got, want)
		}
	}
}

// TestRemovedBucket removes a bucket under a store that remembers it.
func TestRemovedBucket(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	s := open(t, kv.Config{Conn: nc}).Session(granted.Always)
	remove := func() {
		t.Helper()
		must(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, []byte("x"))
		if err := bustest.JetStream(t, nc).DeleteKeyValue(t.Context(), "FH_KV_counters"); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	fails(t, s, access.CodeNotFound, "kv.get", `{"bucket":"counters","key":"k"}`, nil)
	remove()
	must(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, []byte("y"))
	remove()
	must(t, s, "kv.delete", `{"bucket":"counters","key":"k"}`, nil)
	remove()
	if a := do(t, s, "kv.list", `{"bucket":"counters"}`, nil); a.Fault != nil || string(a.Body) != "[]" {
		t.Errorf("%s %+v, want an empty list", a.Body, a.Fault)
	}
}

// TestServerGone has operations meet a server that ends under them.
func TestServerGone(t *testing.T) {
	t.Parallel()
	external := bustest.NewExternal(t)
	external.Start()
	log := &bustest.LogLines{}
	nc := external.Connect(log, external.Address())
	s := open(t, kv.Config{Conn: nc, Timeout: 2 * time.Second}).Session(granted.Always)
	must(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, []byte("x"))
	faults := make(chan *access.Fault)
	kinds := map[string]string{
		"kv.get": `{"bucket":"counters","key":"k"}`, "kv.put": `{"bucket":"counters","key":"k"}`,
		"kv.delete": `{"bucket":"counters","key":"other"}`, "kv.list": `{"bucket":"counters"}`,
	}
	for kind, head := range kinds {
		go func() {
			for {
				if a := s.Do(t.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(head)}); a.Fault != nil {
					faults <- a.Fault
					return
				}
			}
		}()
	}
	external.Stop()
	for range kinds {
		if f := <-faults; f.Code != access.CodeUnreachable || !f.Retryable {
			t.Errorf("%+v, want unreachable and retryable", f)
		}
	}
	external.Start()
	bustest.Eventually(t, "a put succeeds again", func() bool {
		return do(t, s, "kv.put", `{"bucket":"counters","key":"k"}`, nil).Fault == nil
	})
}

// TestEndedAttempt tells an attempt that was canceled from one whose time is used up.
func TestEndedAttempt(t *testing.T) {
	t.Parallel()
	s := session(t, granted)
	op := &access.Operation{Kind: access.KindKVPut, Head: json.RawMessage(`{"bucket":"counters","key":"k"}`)}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if f := s.Do(canceled, op).Fault; f == nil || f.Code != access.CodeCanceled || f.Retryable {
		t.Errorf("%+v, want canceled", f)
	}
	if f := s.Do(late, op).Fault; f == nil || f.Code != access.CodeTimeout || !f.Retryable {
		t.Errorf("%+v, want timeout, retryable", f)
	}
}
