package secrets_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/run/access"
)

// TestTheOperatorsBound has the operator narrow the sources of secrets while values are
// cached: the next use is denied.
func TestTheOperatorsBound(t *testing.T) {
	t.Parallel()
	var bound atomic.Pointer[access.Allow]
	r := newRig(t, secrets.Config{Allow: func(string) *access.Allow { return bound.Load() }})
	r.declare("token", access.Secret{Env: "TOKEN"})
	r.setenv("TOKEN", "value")
	r.wants("token", "value")
	bound.Store(&access.Allow{Pattern: "*", Sources: &access.Sources{Env: []string{"TOK*"}}})
	r.wants("token", "value")
	asked := r.lookups()
	for _, narrow := range []*access.Allow{{Pattern: "*"}, {}, {Pattern: "*", Sources: &access.Sources{Env: []string{"OTHER"}, File: []string{"/**"}}}} {
		bound.Store(narrow)
		_, err := r.Resolve(t.Context(), "flow", "token")
		fault, ok := err.(*access.Fault)
		if !ok || fault.Code != access.CodeDenied || strings.Contains(fault.Message+fault.Add, "TOKEN") {
			t.Errorf("%+v: %+v", narrow, err)
		}
		err = r.Check(t.Context(), "flow", "token")
		if fault, ok = err.(*access.Fault); !ok || !strings.Contains(fault.Add, `sources { env = ["TOKEN"] }`) {
			t.Errorf("%+v: check: %+v", narrow, err)
		}
	}
	r.declare("token", access.Secret{Env: "TOKEN", Operator: true})
	r.wants("token", "value")
	if n := r.lookups(); n != asked {
		t.Errorf("%d lookups, want %d", n, asked)
	}
}

// TestLinksStayWithinTheBound has links of files lead to other places.
func TestLinksStayWithinTheBound(t *testing.T) {
	t.Parallel()
	inside, outside := t.TempDir(), t.TempDir()
	for _, dir := range []*string{&inside, &outside} {
		real, err := filepath.EvalSymlinks(*dir)
		if err != nil {
			t.Fatal(err)
		}
		*dir = real
	}
	r := newRig(t, secrets.Config{Allow: func(string) *access.Allow {
		return &access.Allow{Pattern: "*", Sources: &access.Sources{File: []string{inside + "/**"}, Age: []string{inside + "/**"}}}
	}})
	for _, path := range []string{inside + "/a", outside + "/b"} {
		if err := os.WriteFile(path, []byte("value"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"stays": inside + "/a", "leaves": outside + "/b", "folder": outside, "lost": inside + "/gone"} {
		if err := os.Symlink(to, filepath.Join(inside, link)); err != nil {
			t.Skip(err)
		}
	}
	for name, tt := range map[string]struct {
		secret  access.Secret
		message string // "" if it has the value
	}{
		"a file":              {access.Secret{File: inside + "/a"}, ""},
		"a link":              {access.Secret{File: inside + "/stays"}, ""},
		"a link out":          {access.Secret{File: inside + "/leaves"}, "is a link that leads to where"},
		"a directory's link":  {access.Secret{File: inside + "/folder/b"}, "is a link that leads to where"},
		"a link to nothing":   {access.Secret{File: inside + "/lost"}, "does not exist"},
		"age, a link out":     {access.Secret{Age: inside + "/leaves", Key: "k"}, "is a link that leads to where"},
		"settings, anywhere":  {access.Secret{File: inside + "/leaves", Operator: true}, ""},
		"dots":                {access.Secret{File: inside + "/../x"}, "does not allow"},
		"a place beyond both": {access.Secret{File: outside + "/b"}, "does not allow"},
	} {
		r.declare(name, tt.secret)
		value, err := r.Resolve(t.Context(), "flow", name)
		switch {
		case tt.message == "" && (err != nil || value != "value"):
			t.Errorf("%s: %q %v", name, value, err)
		case tt.message != "" && (err == nil || !strings.Contains(err.Error(), tt.message) || strings.Contains(err.Error(), outside)):
			t.Errorf("%s: %q %v, want %q", name, value, err, tt.message)
		}
	}
	// A link that changes leads nowhere else with the next lookup.
	if err := os.Remove(inside + "/stays"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/b", inside+"/stays"); err != nil {
		t.Fatal(err)
	}
	r.Invalidate()
	if value, err := r.Resolve(t.Context(), "flow", "a link"); err == nil {
		t.Errorf("the link was changed, and gave %q", value)
	}
}
