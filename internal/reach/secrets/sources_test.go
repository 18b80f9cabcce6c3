package secrets_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/run/access"
)

func TestNotDeclared(t *testing.T) {
	t.Parallel()
	r := newRig(t, secrets.Config{})
	r.declare("token", access.Secret{Env: "TOKEN"})
	r.setenv("TOKEN", planted)
	for _, call := range [][2]string{{"flow", "tokem"}, {"other", "token"}} {
		_, err := r.Resolve(t.Context(), call[0], call[1])
		fault, ok := err.(*access.Fault)
		if !ok || fault.Code != access.CodeDenied || fault.Rule == "" || fault.Target != call[1] || !strings.Contains(fault.Add, call[1]) || !fault.Retryable {
			t.Errorf("%v: %+v", call, err)
		}
		if checked := r.Check(t.Context(), call[0], call[1]); checked == nil || checked.Error() != fault.Message {
			t.Errorf("%v: check: %v", call, checked)
		}
	}
	if n := r.lookups(); n != 0 {
		t.Errorf("%d lookups", n)
	}
}

func TestEnv(t *testing.T) {
	t.Parallel()
	r := newRig(t, secrets.Config{})
	r.declare("token", access.Secret{Env: "TOKEN"})
	r.declare("missing", access.Secret{Env: "MISSING"})
	r.declare("empty", access.Secret{Env: "EMPTY"})
	r.declare("long", access.Secret{Env: "LONG"})
	r.declare("nowhere", access.Secret{})
	r.setenv("TOKEN", planted+"\n")
	r.setenv("EMPTY", "")
	r.setenv("LONG", strings.Repeat(planted, 64<<10))
	r.wants("token", planted+"\n")
	if err := r.Check(t.Context(), "flow", "token"); err != nil {
		t.Error(err)
	}
	r.fails("missing", "is not set", "MISSING", false)
	r.fails("empty", "is empty", "EMPTY", true)
	r.fails("long", "longer than 65536 bytes", "LONG", false)
	r.fails("nowhere", "has no source", "", false)
}

func TestFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, secrets.Config{})
	for name, content := range map[string]string{
		"plain": planted, "newline": planted + "\n", "dos": planted + "\r\n", "two": planted + "\n\n",
		"most": strings.Repeat("x", 64<<10) + "\r\n", "more": strings.Repeat(planted, 10<<10), "empty": "\n",
	} {
		r.write(name, content)
		r.declare(name, access.Secret{File: name})
	}
	r.wants("plain", planted)
	r.wants("newline", planted)
	r.wants("dos", planted)
	r.wants("two", planted+"\n")
	r.wants("most", strings.Repeat("x", 64<<10))
	r.fails("more", "larger than", filepath.Join(r.dir, "more"), false)
	r.fails("empty", "is empty", filepath.Join(r.dir, "empty"), true)

	r.declare("absolute", access.Secret{File: filepath.Join(r.dir, "plain")})
	r.wants("absolute", planted)
	r.declare("missing", access.Secret{File: "a/b"})
	r.fails("missing", "does not exist", filepath.Join(r.dir, "a", "b"), true)
	r.declare("directory", access.Secret{File: "."})
	r.fails("directory", "no regular file", r.dir, false)
}

func TestReadableByAll(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such permissions there")
	}
	r := newRig(t, secrets.Config{})
	path := r.write("open", planted)
	r.declare("open", access.Secret{File: "open"})
	r.write("closed", planted)
	r.declare("closed", access.Secret{File: "closed"})
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.wants("open", planted)
		r.wants("closed", planted)
		r.Invalidate()
	}
	if text := r.log.String(); strings.Count(text, "may read") != 1 || !strings.Contains(text, path) {
		t.Errorf("the log:\n%s", text)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys.txt")
	if err := os.WriteFile(keys, []byte("# created by hand\n"+mine.String()+"\n\n"+hybrid.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, secrets.Config{AgeIdentities: []string{keys}})
	object := `{"token": "` + planted + `-1", "number": 1, "nothing": null, "other": "` + planted + `"}`
	lines := "# a comment\nexport token='" + planted + "-2'\n"
	for name, content := range map[string]string{
		"json.age":    encrypt(t, mine.Recipient(), object, false),
		"armored.age": "\n" + encrypt(t, mine.Recipient(), object, true),
		"hybrid.age":  encrypt(t, hybrid.Recipient(), lines, false),
		"foreign.age": encrypt(t, foreign.Recipient(), object, false),
		"plain.age":   object,
		"text.age":    encrypt(t, mine.Recipient(), planted, false),
		"broken.age":  encrypt(t, mine.Recipient(), "{"+planted, false),
		"cut.age":     strings.TrimSuffix(encrypt(t, mine.Recipient(), object, false), "x")[:220],
	} {
		r.write(name, content)
		r.declare(name, access.Secret{Age: name, Key: "token"})
	}
	r.wants("json.age", planted+"-1")
	r.wants("armored.age", planted+"-1")
	r.wants("hybrid.age", planted+"-2")
	place := func(name string) string { return filepath.Join(r.dir, name) }
	r.fails("foreign.age", "cannot be decrypted", place("foreign.age"), true)
	r.fails("plain.age", "cannot be decrypted", place("plain.age"), true)
	r.fails("cut.age", "cannot be decrypted", place("cut.age"), true)
	r.fails("text.age", "neither a JSON object nor lines", place("text.age")+": line 1", true)
	r.fails("broken.age", "not valid JSON", place("broken.age"), true)
	for key, message := range map[string]string{"number": "not a string", "nothing": "not a string", "missing": `no key "missing"`, "": "has no key"} {
		r.declare("a key", access.Secret{Age: "json.age", Key: key})
		r.fails("a key", message, place("json.age"), key != "")
	}
	r.declare("missing", access.Secret{Age: "missing.age", Key: "token"})
	r.fails("missing", "does not exist", place("missing.age"), true)
}

func TestAgeIdentities(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	r := newRig(t, secrets.Config{AgeIdentities: []string{key}})
	r.declare("token", access.Secret{Age: "secrets.age", Key: "token"})
	r.fails("token", "an identity of age cannot be read", key, true)
	if err := os.WriteFile(key, []byte("AGE-SECRET-KEY-1"+strings.ToUpper(planted)+"\n"+planted), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Invalidate()
	r.fails("token", "an identity of age cannot be read", key, true)
	if text := strings.ToLower(r.log.String()); strings.Contains(text, planted) {
		t.Errorf("the log has a part of an identity:\n%s", text)
	}
	none := newRig(t, secrets.Config{})
	none.declare("token", access.Secret{Age: "secrets.age", Key: "token"})
	none.fails("token", "has no identities", "", false)
}
