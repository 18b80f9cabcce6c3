package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/run/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planted is in all values of the tests, and must be in no error, log or fault.
const planted = "pl4nted"

// rig is a Store with what it reads.
type rig struct {
	*secrets.Store
	t   *testing.T
	dir string
	log lines

	mu       sync.Mutex
	declared map[string]*access.Secret // by name, for all flows but "other"
	env      map[string]string
	asked    int // times for a variable
	seen     []string
}

// newRig makes a Store that ends with the test.
func newRig(t *testing.T, config secrets.Config) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), declared: map[string]*access.Secret{}, env: map[string]string{}}
	config.Deployed, config.Env = r, r.getenv
	config.Seen = func(values ...string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, values...)
	}
	config.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	r.Store = secrets.New(config)
	t.Cleanup(func() {
		r.Close()
		if text := r.log.String(); strings.Contains(text, planted) {
			t.Errorf("the log has a value:\n%s", text)
		}
	})
	return r
}

func (r *rig) Connection(string, string) *access.Connection { return nil }

func (r *rig) Secret(flow, name string) *access.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	if flow == "other" {
		return nil
	}
	return r.declared[name]
}

func (r *rig) getenv(name string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	value, ok := r.env[name]
	return value, ok
}

func (r *rig) lookups() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *rig) setenv(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.env[name] = value
}

func (r *rig) declare(name string, s access.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Name, s.Folder = name, r.dir
	r.declared[name] = &s
}

// write writes a file that only its owner may read, and returns its path.
func (r *rig) write(name, content string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// wants expects a value, which Seen has received.
func (r *rig) wants(name, value string) {
	r.t.Helper()
	got, err := r.Resolve(r.t.Context(), "flow", name)
	if err != nil || got != value {
		r.t.Errorf("%s: %q, %v, want %q", name, got, err, value)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.seen, value) {
		r.t.Errorf("%s: nobody was asked to mask it", name)
	}
}

// fails expects a fault with a part of its message, and for the operator also the cause.
func (r *rig) fails(name, message, cause string, retryable bool) {
	r.t.Helper()
	value, err := r.Resolve(r.t.Context(), "flow", name)
	fault, ok := err.(*access.Fault)
	if !ok || value != "" || fault.Code != access.CodeUnreachable || fault.Target != name || fault.Retryable != retryable ||
		!strings.Contains(fault.Message, message) || cause != "" && strings.Contains(fault.Message, cause) {
		r.t.Errorf("%s: %q, %+v, want a fault with %q", name, value, err, message)
		return
	}
	checked := r.Check(r.t.Context(), "flow", name)
	if !errors.As(checked, &fault) || !strings.Contains(checked.Error(), message) || !strings.Contains(checked.Error(), cause) {
		r.t.Errorf("%s: check: %v, want %q and %q", name, checked, message, cause)
		return
	}
	for _, text := range []string{checked.Error(), fault.Message, fault.Detail, fault.Add, fault.Rule} {
		if strings.Contains(text, planted) {
			r.t.Errorf("%s: a value is in %q", name, text)
		}
	}
}

// lines is a log that is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// encrypt returns a file of age.
func encrypt(t *testing.T, to age.Recipient, content string, armored bool) string {
	t.Helper()
	var b bytes.Buffer
	var ends []func() error
	file, err := age.Encrypt(&b, to)
	if armored {
		b.Reset()
		a := armor.NewWriter(&b)
		ends = append(ends, a.Close)
		file, err = age.Encrypt(a, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	for _, end := range append([]func() error{file.Close}, ends...) {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// later resolves a secret in a goroutine of its own.
func (r *rig) later(ctx context.Context, name string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := r.Resolve(ctx, "flow", name)
		done <- err
	}()
	return done
}
