package artifacts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

var granted = access.Policy{Grants: access.Grants{Artifacts: true}}

// session gives a session that ends with the test.
func session(t testing.TB, cfg artifacts.Config, policy access.Policy, readable func(string) bool) *artifacts.Session {
	t.Helper()
	s := artifacts.New(cfg).Session(policy.Always, readable)
	t.Cleanup(func() { s.Close(context.WithoutCancel(t.Context())) })
	return s
}

type head struct {
	Handle      int
	Size        int64
	Digest      string
	ContentType string `json:"content_type"`
	End         bool
}

func do(t testing.TB, s *artifacts.Session, kind, text string, body []byte) (head, []byte, *access.Fault) {
	t.Helper()
	a := s.Do(t.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(text), Body: body})
	var h head
	if a.Fault == nil {
		if err := json.Unmarshal(a.Head, &h); err != nil {
			t.Fatal(err)
		}
	}
	return h, a.Body, a.Fault
}

func must(t testing.TB, s *artifacts.Session, kind, text string, body []byte) (head, []byte) {
	t.Helper()
	h, got, fault := do(t, s, kind, text, body)
	if fault != nil {
		t.Fatalf("%s %s: %+v", kind, text, fault)
	}
	return h, got
}

func fails(t testing.TB, s *artifacts.Session, code, kind, text string, body []byte) *access.Fault {
	t.Helper()
	_, _, fault := do(t, s, kind, text, body)
	if fault == nil || fault.Code != code {
		t.Fatalf("%s %s: %+v, want %s", kind, text, fault, code)
	}
	return fault
}

func of(handle int) string { return fmt.Sprintf(`{"handle":%d}`, handle) }

// eachSession runs a test on a session of every store.
func eachSession(t *testing.T, test func(t *testing.T, store artifacts.Store, s site)) {
	eachStore(t, func(t *testing.T, s site) { test(t, s.open(t, 0), s) })
}

func TestSession(t *testing.T) {
	eachSession(t, func(t *testing.T, store artifacts.Store, _ site) {
		s := session(t, artifacts.Config{Store: store}, granted, nil)
		created, _ := must(t, s, "artifact.create", `{"name":"report","content_type":"text/csv"}`, nil)
		data := noise(1, 3<<20+5)
		for rest := data; len(rest) > 0; {
			part := rest[:min(len(rest), ops.MaxBody)]
			rest = rest[len(part):]
			if h, _ := must(t, s, "artifact.write", of(created.Handle), part); h.Size != int64(len(data)-len(rest)) {
				t.Errorf("size %d, want %d", h.Size, len(data)-len(rest))
			}
		}
		fails(t, s, access.CodeNotFound, "artifact.open", `{"name":"report"}`, nil)
		done, _ := must(t, s, "artifact.commit", of(created.Handle), nil)
		if done.Digest != digestOf(data) || done.Size != int64(len(data)) {
			t.Errorf("%+v, want %s and %d", done, digestOf(data), len(data))
		}
		fails(t, s, access.CodeInvalid, "artifact.write", of(created.Handle), nil)
		for _, by := range []string{`{"name":"report"}`, `{"digest":"` + done.Digest + `"}`} {
			opened, _ := must(t, s, "artifact.open", by, nil)
			if opened.Size != done.Size || opened.ContentType != "text/csv" {
				t.Errorf("%s: %+v", by, opened)
			}
			var got []byte
			for end := false; !end; {
				h, part := must(t, s, "artifact.read", fmt.Sprintf(`{"handle":%d,"offset":%d,"length":1000000}`, opened.Handle, len(got)), nil)
				if h.Size != int64(len(part)) {
					t.Errorf("%+v of %d bytes", h, len(part))
				}
				got, end = append(got, part...), h.End
			}
			if !bytes.Equal(got, data) {
				t.Errorf("read %d bytes that differ", len(got))
			}
			if h, part := must(t, s, "artifact.read", fmt.Sprintf(`{"handle":%d,"offset":1099511627776}`, opened.Handle), nil); len(part) > 0 || !h.End {
				t.Errorf("%d bytes behind the end, %+v", len(part), h)
			}
			must(t, s, "artifact.close", of(opened.Handle), nil)
			fails(t, s, access.CodeInvalid, "artifact.read", of(opened.Handle), nil)
		}
	})
}

// TestReadable has a guest name digests of others.
func TestReadable(t *testing.T) {
	eachSession(t, func(t *testing.T, store artifacts.Store, _ site) {
		there := put(t, store, []byte("of another flow"), "text/secret", time.Now())
		missing := digestOf([]byte("never stored"))
		open := func(digest string) string { return fmt.Sprintf(`{"digest":%q}`, digest) }
		s := session(t, artifacts.Config{Store: store}, granted, nil)
		one := fails(t, s, access.CodeDenied, "artifact.open", open(there), nil)
		two := fails(t, s, access.CodeDenied, "artifact.open", open(missing), nil)
		one.Target, two.Target = "", ""
		if *one != *two {
			t.Errorf("%+v and %+v: the guest learns which artifact exists", one, two)
		}
		// What it stores itself it may read, and learns nothing of others by it.
		created, _ := must(t, s, "artifact.create", `{}`, nil)
		must(t, s, "artifact.write", of(created.Handle), []byte("of another flow"))
		must(t, s, "artifact.commit", of(created.Handle), nil)
		if opened, _ := must(t, s, "artifact.open", open(there), nil); opened.ContentType != "" {
			t.Errorf("%+v: the guest learns that another flow has stored this", opened)
		}
		input := []byte(`{"report":"` + there + `","other":["` + missing + `"]}`)
		given := session(t, artifacts.Config{Store: store}, granted, artifacts.Mentioned([]byte("{}"), input))
		if opened, _ := must(t, given, "artifact.open", open(there), nil); opened.ContentType != "text/secret" {
			t.Errorf("%+v", opened)
		}
		fails(t, given, access.CodeNotFound, "artifact.open", open(missing), nil)
	})
}

func TestArtifactPolicy(t *testing.T) {
	t.Parallel()
	store := openFiles(t, t.TempDir(), 0)
	tests := []struct {
		name   string
		policy access.Policy
		rule   string
	}{
		{"granted", granted, ""},
		{"not granted", access.Policy{}, ops.RuleGrant},
		{"allowed and not granted", access.Policy{Allow: &access.Allow{Artifacts: true}}, ops.RuleGrant},
		{"granted and not allowed", access.Policy{Grants: granted.Grants, Allow: &access.Allow{Pattern: "*"}}, ops.RuleAllow},
		{"granted and allowed", access.Policy{Grants: granted.Grants, Allow: &access.Allow{Pattern: "*", Artifacts: true}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := session(t, artifacts.Config{Store: store}, test.policy, nil)
			if test.rule == "" {
				must(t, s, "artifact.create", `{}`, nil)
				return
			}
			for _, kind := range []string{"create", "write", "commit", "open", "read", "close"} {
				if f := fails(t, s, access.CodeDenied, "artifact."+kind, `{}`, nil); f.Rule != test.rule || f.Add != "artifacts = true" {
					t.Errorf("%+v, want rule %q", f, test.rule)
				}
			}
		})
	}
}

func TestArtifactCorpus(t *testing.T) {
	t.Parallel()
	s := session(t, artifacts.Config{Store: openFiles(t, t.TempDir(), 0)}, granted, func(string) bool { return true })
	created, _ := must(t, s, "artifact.create", `{}`, nil)
	must(t, s, "artifact.write", of(created.Handle), []byte("report"))
	must(t, s, "artifact.commit", of(created.Handle), nil)
	reading, _ := must(t, s, "artifact.open", `{"digest":"`+digestOf([]byte("report"))+`"}`, nil)
	writing, _ := must(t, s, "artifact.create", `{}`, nil)
	for _, c := range []struct{ name, kind, head string }{
		{"digest as a path", "open", `{"digest":"../../flowhost.hcl"}`},
		{"digest as a path with its prefix", "open", `{"digest":"sha256:../../../../../../../../../../../../../../../../../../../../etc/passwd"}`},
		{"digest in upper case", "open", `{"digest":"` + strings.ToUpper(digestOf(nil)) + `"}`},
		{"digest without its prefix", "open", `{"digest":"` + digestOf(nil)[7:] + `"}`},
		{"digest of another length", "open", `{"digest":"` + digestOf(nil) + `0"}`},
		{"digest with .type", "open", `{"digest":"` + digestOf(nil)[:66] + `.type"}`},
		{"neither digest nor name", "open", `{}`},
		{"digest and name", "open", `{"digest":"` + digestOf(nil) + `","name":"a"}`},
		{"name with a line break", "create", `{"name":"a\nb"}`},
		{"name of 257 bytes", "create", `{"name":"` + strings.Repeat("a", 257) + `"}`},
		{"content type with a line break", "create", `{"content_type":"text/plain\r\nX: y"}`},
		{"a path", "create", `{"path":"/etc/passwd"}`},
		{"no handle", "write", `{}`},
		{"handle 0", "write", `{"handle":0}`},
		{"negative handle", "commit", `{"handle":-1}`},
		{"handle of nobody", "read", `{"handle":99}`},
		{"handle that is none", "close", `{"handle":99}`},
		{"handle as text", "close", `{"handle":"1"}`},
		{"writing what is read", "write", of(reading.Handle)},
		{"committing what is read", "commit", of(reading.Handle)},
		{"reading what is written", "read", of(writing.Handle)},
		{"negative offset", "read", fmt.Sprintf(`{"handle":%d,"offset":-1}`, reading.Handle)},
		{"negative length", "read", fmt.Sprintf(`{"handle":%d,"length":-1}`, reading.Handle)},
		{"length beyond the most", "read", fmt.Sprintf(`{"handle":%d,"length":%d}`, reading.Handle, ops.MaxBody+1)},
		{"another operation", "delete", of(reading.Handle)},
	} {
		t.Run(c.name, func(t *testing.T) { fails(t, s, access.CodeInvalid, "artifact."+c.kind, c.head, nil) })
	}
	for _, kind := range []string{"create", "commit", "open", "read", "close"} {
		fails(t, s, access.CodeInvalid, "artifact."+kind, `{}`, []byte("body"))
	}
	fails(t, s, access.CodeTooLarge, "artifact.write", of(writing.Handle), make([]byte, ops.MaxBody+1))
	if h, part := must(t, s, "artifact.read", fmt.Sprintf(`{"handle":%d,"offset":9223372036854775807}`, reading.Handle), nil); len(part) > 0 || !h.End {
		t.Errorf("%+v", h)
	}
}

func TestBounds(t *testing.T) {
	eachSession(t, func(t *testing.T, store artifacts.Store, where site) {
		before := where.room(t)
		s := session(t, artifacts.Config{Store: store, Max: 1 << 20}, granted, nil)
		var last head
		for range artifacts.MaxHandles {
			last, _ = must(t, s, "artifact.create", `{}`, nil)
		}
		fails(t, s, access.CodeBudget, "artifact.create", `{}`, nil)
		must(t, s, "artifact.close", of(last.Handle), nil)
		last, _ = must(t, s, "artifact.create", `{}`, nil)
		must(t, s, "artifact.write", of(last.Handle), make([]byte, 1<<20))
		f := fails(t, s, access.CodeTooLarge, "artifact.write", of(last.Handle), []byte("x"))
		if !strings.Contains(f.Message, "write several") {
			t.Errorf("%q does not say what to do", f.Message)
		}
		fails(t, s, access.CodeTooLarge, "artifact.commit", of(last.Handle), nil)
		s.Close(t.Context())
		fails(t, s, access.CodeCanceled, "artifact.create", `{}`, nil)
		fails(t, s, access.CodeCanceled, "artifact.write", of(last.Handle), nil)
		if after := where.room(t); after != before {
			t.Errorf("%d files or messages are left at the end of the attempt, want %d", after, before)
		}
	})
}

func TestFullStore(t *testing.T) {
	eachStore(t, func(t *testing.T, where site) {
		store := where.open(t, 2<<20-1)
		s := session(t, artifacts.Config{Store: store}, granted, nil)
		for range 2 { // the first one leaves room for the second
			created, _ := must(t, s, "artifact.create", `{}`, nil)
			must(t, s, "artifact.write", of(created.Handle), make([]byte, 1<<20))
			f := fails(t, s, access.CodeTooLarge, "artifact.write", of(created.Handle), make([]byte, 1<<20))
			if !strings.Contains(f.Message, "raise its quota") {
				t.Errorf("%q does not say what to do", f.Message)
			}
		}
	})
}

// TestMemory writes and reads an artifact of 64 MiB, with little memory.
func TestMemory(t *testing.T) {
	// The server of the objects is in this process, and keeps some blocks of 8 MiB.
	for name, most := range map[string]uint64{"files": 4 << 20, "objects": 40 << 20} {
		t.Run(name, func(t *testing.T) { // not parallel: the memory is the whole process's
			grown := passThrough(t, sites[name](t).open(t, 0), 64<<20)
			t.Logf("64 MiB with %d KiB of memory", grown>>10)
			if grown > most {
				t.Errorf("the heap grows by %d bytes, want at most %d", grown, most)
			}
		})
	}
}

// passThrough writes and reads an artifact of a size and gives the growth of live memory.
func passThrough(t testing.TB, store artifacts.Store, size int64) uint64 {
	t.Helper()
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := live(), uint64(0)
	s := session(t, artifacts.Config{Store: store}, granted, nil)
	part := noise(1, ops.MaxBody)
	created, _ := must(t, s, "artifact.create", `{}`, nil)
	for written := int64(0); written < size; written += int64(len(part)) {
		part[0]++
		must(t, s, "artifact.write", of(created.Handle), part)
		if written%(16<<20) == 0 {
			most = max(most, live())
		}
	}
	done, _ := must(t, s, "artifact.commit", of(created.Handle), nil)
	opened, _ := must(t, s, "artifact.open", `{"digest":"`+done.Digest+`"}`, nil)
	for offset := int64(0); offset < size; offset += ops.MaxBody {
		must(t, s, "artifact.read", fmt.Sprintf(`{"handle":%d,"offset":%d}`, opened.Handle, offset), nil)
		if offset%(16<<20) == 0 {
			most = max(most, live())
		}
	}
	return most - min(before, most)
}

// TestServerGone has an artifact meet a server that ends under it.
func TestServerGone(t *testing.T) {
	t.Parallel()
	external := bustest.NewExternal(t)
	external.Start()
	nc := external.Connect(&bustest.LogLines{}, external.Address())
	store, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: nc, Quota: 1 << 30, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	digest := put(t, store, noise(1, 1<<20), "", time.Now())
	s := session(t, artifacts.Config{Store: store}, granted, func(string) bool { return true })
	created, _ := must(t, s, "artifact.create", `{}`, nil)
	opened, _ := must(t, s, "artifact.open", `{"digest":"`+digest+`"}`, nil)
	faults := make(chan *access.Fault)
	for kind, text := range map[string]string{
		"artifact.write": of(created.Handle), "artifact.read": of(opened.Handle), "artifact.open": `{"digest":"` + digest + `"}`,
	} {
		body := []byte(nil)
		if kind == "artifact.write" {
			body = noise(2, 600<<10)
		}
		go func() {
			for {
				a := s.Do(t.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(text), Body: body})
				switch {
				case a.Fault != nil:
					faults <- a.Fault
					return
				case kind == "artifact.open":
					var h head
					if err := json.Unmarshal(a.Head, &h); err != nil {
						t.Error(err)
					}
					s.Do(t.Context(), &access.Operation{Kind: "artifact.close", Head: json.RawMessage(of(h.Handle))})
				}
			}
		}()
	}
	external.Stop()
	for range 3 {
		if f := <-faults; f.Code != access.CodeUnreachable || !f.Retryable {
			t.Errorf("%+v, want unreachable and retryable", f)
		}
	}
	external.Start()
	bustest.Eventually(t, "the artifact can be read again", func() bool {
		_, _, fault := do(t, s, "artifact.read", of(opened.Handle), nil)
		return fault == nil
	})
}

// TestFilesOfTheHostStayUnnamed has no path of the host in a fault.
func TestFilesOfTheHostStayUnnamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := artifacts.OpenFiles(artifacts.FilesConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s := session(t, artifacts.Config{Store: f}, granted, func(string) bool { return true })
	for kind, text := range map[string]string{"artifact.create": `{}`, "artifact.open": `{"digest":"` + digestOf(nil) + `"}`} {
		a := s.Do(t.Context(), &access.Operation{Kind: kind, Head: json.RawMessage(text)})
		if a.Fault == nil || bytes.Contains(a.Head, []byte(dir)) || bytes.Contains(a.Head, []byte("tmp/")) {
			t.Errorf("%s: %s", kind, a.Head)
		}
	}
}

// failing is a store whose writers fail with an error.
type failing struct {
	artifacts.Store
	err error
}

func (f failing) Begin(context.Context) (artifacts.Writer, error) { return nil, f.err }

func TestUnknownErrorsStayUnnamed(t *testing.T) {
	t.Parallel()
	s := session(t, artifacts.Config{Store: failing{err: errors.Join(io.ErrUnexpectedEOF, errors.New("s3cret"))}}, granted, nil)
	if f := fails(t, s, access.CodeUnreachable, "artifact.create", `{}`, nil); strings.Contains(f.Message, "s3cret") || !f.Retryable {
		t.Errorf("%+v", f)
	}
}
