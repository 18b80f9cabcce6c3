package natsd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/flowhost/flowhost/bus"
)

// realm is an operator with one account, as clusters with decentralised
// authentication have them.
type realm struct {
	account nkeys.KeyPair
	url     string
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	operator, account := key(t, nkeys.CreateOperator), key(t, nkeys.CreateAccount)
	claims := jwt.NewOperatorClaims(public(t, operator))
	token, err := claims.Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := jwt.DecodeOperatorClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	resolver := &server.MemAccResolver{}
	accountToken, err := jwt.NewAccountClaims(public(t, account)).Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolver.Store(public(t, account), accountToken); err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: resolver,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return &realm{account: account, url: s.ClientURL()}
}

// user writes a credentials file, signed by the given account.
func user(t *testing.T, account nkeys.KeyPair) string {
	t.Helper()
	keys := key(t, nkeys.CreateUser)
	token, err := jwt.NewUserClaims(public(t, keys)).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := keys.Seed()
	if err != nil {
		t.Fatal(err)
	}
	content, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func key(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	pair, err := create()
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	text, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestConnectWithACredentialsFile(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	nc, err := bus.Connect(t.Context(), bus.ConnectConfig{URL: r.url, Creds: user(t, r.account)})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.FlushTimeout(10 * time.Second); err != nil {
		t.Errorf("the connection does not work: %v", err)
	}
}

// The file that a host leaves for other programs is accepted where credentials are named.
func TestConnectWithAContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Start(t.Context(), Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	for _, file := range []string{ClientContext, OperatorContext} {
		nc, err := bus.Connect(t.Context(), bus.ConnectConfig{URL: s.URL(), Creds: filepath.Join(dir, file)})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if err := nc.Publish("fh.v1.trigger.x", nil); err != nil {
			t.Error(err)
		}
		if _, err := nc.SubscribeSync(nc.NewRespInbox()); err != nil {
			t.Error(err)
		}
		if err := errors.Join(nc.FlushTimeout(10*time.Second), nc.LastError()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestCredentialsOfAnotherAccountAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	nc, err := bus.Connect(ctx, bus.ConnectConfig{URL: r.url, Creds: user(t, key(t, nkeys.CreateAccount))})
	if err == nil {
		nc.Close()
		t.Fatal("a user of an unknown account got in")
	}
	if ctx.Err() != nil {
		t.Errorf("the refusal was waited for: %v", err)
	}
}
