// Package vault_test reads the server that stands for Vault in tests with the client of
// OpenBao: what flowhost understands of it, others understand, too.
package vault_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/openbao/openbao/api/v2"

	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/internal/testkit/vaulttest"
	"github.com/flowhost/flowhost/run/access"
)

// declared is one secret for all flows.
type declared access.Secret

func (d *declared) Secret(string, string) *access.Secret       { return (*access.Secret)(d) }
func (*declared) Connection(string, string) *access.Connection { return nil }

func TestSameAnswers(t *testing.T) {
	t.Parallel()
	server := vaulttest.Start(t, "token-of-the-host", "team", nil)
	server.Put("stripe", map[string]any{"live": "first"})
	server.Put("stripe", map[string]any{"live": "second"})
	server.Put("gone", map[string]any{"live": "value"})
	server.Put("gone", nil)

	settings := api.DefaultConfig()
	settings.Address = server.URL
	client, err := api.NewClient(settings)
	if err != nil {
		t.Fatal(err)
	}
	client.SetToken("token-of-the-host")
	client.SetNamespace("team")
	store := secrets.New(secrets.Config{
		Deployed: (*declared)(&access.Secret{Vault: "kv/data/stripe", Key: "live"}),
		Env:      func(string) (string, bool) { return "token-of-the-host", true },
		Vault:    secrets.VaultConfig{Address: server.URL, TokenEnv: "TOKEN", Namespace: "team"},
	})
	t.Cleanup(store.Close)

	theirs, err := client.KVv2("kv").Get(t.Context(), "stripe")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := store.Resolve(t.Context(), "flow", "stripe")
	if err != nil || ours != "second" || theirs.Data["live"] != ours || theirs.VersionMetadata.Version != 2 {
		t.Errorf("%q, %v; the client has %+v", ours, err, theirs)
	}
	for _, path := range []string{"gone", "missing"} {
		if found, err := client.KVv2("kv").Get(t.Context(), path); !errors.Is(err, api.ErrSecretNotFound) && (err != nil || found.Data != nil) {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
	}
	client.SetToken("another")
	var refused *api.ResponseError
	if _, err := client.KVv2("kv").Get(t.Context(), "stripe"); !errors.As(err, &refused) || refused.StatusCode != http.StatusForbidden {
		t.Errorf("with another token: %v", err)
	}
}
