package natsd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/creds"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// Files with the seeds of the users of an external server.
const (
	EngineSeed   = "engine.nk"
	AppSeed      = "engine-app.nk"
	OperatorSeed = "operator.nk"
	ClientSeed   = "client.nk"
)

// externalPending is what an external server keeps for a connection that does not read,
// in bytes: it cannot distinguish the engine's from others, and more than this is never under way
// to one of the engine's on which commits depend.
const externalPending = 64 << 20

// ExternalConfig configures [ExternalConfiguration].
type ExternalConfig struct {
	Keys     string       // directory of the users' seeds; those that are missing are made
	URL      string       // of the server, for the contexts of operator and client in that directory; default: none are written
	Subjects []string     // on which flows listen themselves
	Log      *slog.Logger // default: none
}

// ExternalConfiguration gives the configuration with which a NATS server keeps apart what
// the embedded one does: accounts, what passes between them, users, permissions and
// limits. It holds public keys only.
func ExternalConfiguration(cfg ExternalConfig) (string, error) {
	users := logins{}
	for user, file := range map[string]string{userEngine: EngineSeed, userApp: AppSeed, userOperator: OperatorSeed, userClient: ClientSeed} {
		public, err := publicKey(filepath.Join(cfg.Keys, file))
		if err != nil {
			return "", fmt.Errorf("key of NATS user %s: %w", user, err)
		}
		users[user] = login{nkey: public}
	}
	if cfg.URL != "" {
		err := errors.Join(
			leaveContext(cfg.Keys, ClientContext, creds.Context{URL: cfg.URL, Nkey: filepath.Join(cfg.Keys, ClientSeed), Inbox: inboxClient}),
			leaveContext(cfg.Keys, OperatorContext, creds.Context{URL: cfg.URL, Nkey: filepath.Join(cfg.Keys, OperatorSeed), Inbox: inboxOperator}))
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("max_payload: %d\nmax_pending: %d\nmax_connections: %d\nmax_control_line: %d\nwrite_deadline: %q\nauthorization { timeout: %g }\n",
		jskit.MaxPayload, externalPending, maxConnections, maxControlLine, writeDeadline, authTimeout.Seconds()) +
		accountsText(users, grantable(cfg.Subjects, jskit.Logger(cfg.Log))), nil
}

// publicKey is that of a file with a seed, which is made when it is not there.
func publicKey(file string) (string, error) {
	seed, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		seed, err = newSeed(file)
	}
	if err != nil {
		return "", err
	}
	pair, err := nkeys.ParseDecoratedNKey(seed)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return pair.PublicKey()
}

func newSeed(file string) ([]byte, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = writeNew(file, append(seed, '\n'))
	}
	return seed, err
}

// leaveContext writes a context where there is none. One with another content is
// somebody's: of a host, when the directory is its data directory.
func leaveContext(dir, name string, c creds.Context) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	text, file := append(text, '\n'), filepath.Join(dir, name)
	there, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeNew(file, text)
	case err == nil && !bytes.Equal(there, text):
		return fmt.Errorf("%s is there and is not replaced: name another directory, or remove it first", file)
	}
	return err
}

// writeNew writes a file that is not there yet.
func writeNew(file string, text []byte) error {
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return errors.Join(err, to.Sync(), to.Close())
}

// Rights gives who may do what on the server, as a table in Markdown.
func Rights() string {
	code := func(subjects []string, none string) string {
		if len(subjects) == 0 {
			return none
		}
		text := ""
		for i, s := range subjects {
			if i > 0 {
				text += ", "
			}
			text += "`" + s + "`"
		}
		return text
	}
	table := "| user | account | may publish | but not | may subscribe to | but not | inbox prefix |\n| --- | --- | --- | --- | --- | --- | --- |\n"
	for _, u := range []struct{ name, account, inbox string }{
		{userEngine, accountEngine, bus.InboxEngine}, {userApp, accountApp, bus.InboxEngine},
		{userOperator, accountApp, inboxOperator}, {userClient, accountClient, inboxClient},
	} {
		r := rightsOf(u.name, []string{"<subjects of flows>"})
		table += fmt.Sprintf("| `%s` | `%s` | %s | %s | %s | %s | `%s` |\n", u.name, u.account,
			code(r.publish, "everything"), code(r.publishNot, ""), code(r.subscribe, "everything"), code(r.subscribeNot, ""), u.inbox)
	}
	return table
}
