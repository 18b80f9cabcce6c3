package secrets_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/internal/testkit/vaulttest"
	"github.com/flowhost/flowhost/run/access"
)

// newVaultRig makes a Store that reads from a server, with the token of most tests.
func newVaultRig(t *testing.T, server *vaulttest.Server, namespace string) *rig {
	t.Helper()
	r := newRig(t, secrets.Config{Vault: secrets.VaultConfig{Address: server.URL + "/", TokenEnv: "VAULT", Namespace: namespace}})
	r.setenv("VAULT", "token-of-the-host")
	return r
}

func TestVault(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "team", nil)
	server.Put("stripe", map[string]any{"live": planted, "number": 1, "object": map[string]any{"a": planted}})
	server.Put("a b/ü?#%", map[string]any{"live": planted + "-2"})
	server.Put("gone", map[string]any{"live": planted})
	server.Put("gone", nil)
	r := newVaultRig(t, server, "team")
	for name, s := range map[string]access.Secret{
		"stripe":   {Vault: "kv/data/stripe", Key: "live"},
		"slashes":  {Vault: "/kv/data/stripe/", Key: "live"},
		"escaped":  {Vault: "kv/data/a b/ü?#%", Key: "live"},
		"number":   {Vault: "kv/data/stripe", Key: "number"},
		"object":   {Vault: "kv/data/stripe", Key: "object"},
		"key":      {Vault: "kv/data/stripe", Key: "test"},
		"no key":   {Vault: "kv/data/stripe"},
		"gone":     {Vault: "kv/data/gone", Key: "live"},
		"missing":  {Vault: "kv/data/missing", Key: "live"},
		"version1": {Vault: "kv/stripe", Key: "live"},
		"dots":     {Vault: "kv/data/../../sys/health", Key: "live"},
		"empty":    {Vault: "kv//data", Key: "live"},
	} {
		r.declare(name, s)
	}
	r.wants("stripe", planted)
	r.wants("slashes", planted)
	r.wants("escaped", planted+"-2")
	r.fails("number", `key "number" is not a string`, "kv/data/stripe", true)
	r.fails("object", `key "object" is not a string`, "kv/data/stripe", true)
	r.fails("key", `no key "test"`, "kv/data/stripe", true)
	r.fails("no key", "has no key", "", false)
	r.fails("gone", "nothing at the path", "kv/data/gone", true)
	r.fails("missing", "nothing at the path", "kv/data/missing", true)
	r.fails("version1", "data/ follows the mount", "", true)
	before := server.Requests()
	r.fails("dots", "one of dots", "", false)
	r.fails("empty", "an empty segment", "", false)
	if n := server.Requests(); n != before {
		t.Errorf("%d requests for paths that are refused", n-before)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.Contains(strings.Join(r.seen, " "), "token-of-the-host") {
		t.Error("nobody was asked to mask the token")
	}
}

func TestVaultFailures(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "", nil)
	server.Put("app", map[string]any{"key": planted})
	r := newVaultRig(t, server, "")
	r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
	for status, want := range map[int]struct {
		message   string
		retryable bool
	}{
		http.StatusBadRequest:          {"refuses", false},
		http.StatusForbidden:           {"denies access", true},
		http.StatusTooManyRequests:     {"overloaded", true},
		http.StatusInternalServerError: {"overloaded", true},
		http.StatusServiceUnavailable:  {"sealed", true},
		http.StatusTemporaryRedirect:   {"redirects", false},
	} {
		server.Fail(status)
		r.Invalidate()
		before := server.Requests()
		r.fails("token", want.message, strings.TrimPrefix(server.URL, "http://"), want.retryable)
		if n := server.Requests() - before; n != 2 { // of Resolve and Check
			t.Errorf("status %d: %d requests, want 2", status, n)
		}
	}
	server.Fail(0)
	server.SetToken("another")
	r.Invalidate()
	r.fails("token", "denies access", "", true)
	r.setenv("VAULT", "another")
	r.Invalidate()
	r.wants("token", planted)
	for token, message := range map[string]string{"": "has no token", planted + "\r\nX: y": "characters that no token has"} {
		r.setenv("VAULT", token)
		r.Invalidate()
		r.fails("token", message, "", token != "")
	}
	r.setenv("VAULT", "another")
	server.Close()
	r.Invalidate()
	r.fails("token", "does not answer", strings.TrimPrefix(server.URL, "http://"), true)
}

func TestVaultSettings(t *testing.T) {
	t.Parallel()
	for address, message := range map[string]string{
		"":                            "has no Vault",
		"vault.internal:8200":         "address of Vault is wrong",
		"ftp://vault.internal":        "address of Vault is wrong",
		"https://u:" + planted + "@h": "address of Vault is wrong",
		"https://h/?a=b":              "address of Vault is wrong",
		"https://":                    "address of Vault is wrong",
	} {
		r := newRig(t, secrets.Config{Vault: secrets.VaultConfig{Address: address, TokenEnv: "VAULT"}})
		r.setenv("VAULT", "token-of-the-host")
		r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
		r.fails("token", message, "", false)
	}
}

// TestVaultOverTLS has a server that only the given authority vouches for, and a token in a
// file that an agent renews.
func TestVaultOverTLS(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-1", "", func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // it is about certificates that are not trusted
		s.StartTLS()
		return s
	})
	server.Put("app", map[string]any{"key": planted})
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	write := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	declared := access.Secret{Vault: "kv/data/app", Key: "key"}
	r := newRig(t, secrets.Config{Vault: secrets.VaultConfig{Address: server.URL, TokenFile: token, CA: ca}})
	r.declare("token", declared)
	r.fails("token", "token for Vault cannot be read", token, true)
	write(token, []byte("token-1\n"))
	r.Invalidate()
	r.fails("token", "certificates for Vault cannot be read", ca, true)
	write(ca, []byte(planted))
	r.Invalidate()
	r.fails("token", "certificates for Vault cannot be read", ca, true)
	write(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	r.Invalidate()
	r.wants("token", planted)

	server.SetToken("token-2")
	write(token, []byte("token-2"))
	r.Invalidate()
	r.wants("token", planted)

	stranger := newRig(t, secrets.Config{Vault: secrets.VaultConfig{Address: server.URL, TokenFile: token}})
	stranger.declare("token", declared)
	stranger.fails("token", "does not answer", "certificate", true)
}

func TestVaultAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ body, message string }{
		"not JSON":  {planted, "not a secret"},
		"version 1": {`{"data":{"key":"` + planted + `"}}`, "not from version 2"},
		"null":      {`{"data":null}`, "not from version 2"},
		"too long":  {`{"data":{"data":{"key":"` + strings.Repeat(planted, 200_000) + `"}}}`, "longer than 1 MiB"},
		"cut off":   {"", "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if test.body == "" {
					w.Header().Set("Content-Length", "100")
				}
				_, _ = w.Write([]byte(test.body)) // the client may stop reading
			}))
			t.Cleanup(server.Close)
			r := newRig(t, secrets.Config{Vault: secrets.VaultConfig{Address: server.URL, TokenEnv: "VAULT"}})
			r.setenv("VAULT", "token-of-the-host")
			r.declare("token", access.Secret{Vault: "kv/data/app", Key: "key"})
			_, err := r.Resolve(t.Context(), "flow", "token")
			if fault, ok := err.(*access.Fault); !ok || !strings.Contains(fault.Message, test.message) || strings.Contains(fault.Message, planted) {
				t.Errorf("%v, want %q", err, test.message)
			}
		})
	}
}
