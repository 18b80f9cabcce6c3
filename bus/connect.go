package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/internal/creds"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// InboxEngine is the prefix of the subjects on which the engine gets its answers.
const InboxEngine = "_INBOX_engine"

// CredentialsError reports a file with credentials that cannot be used.
type CredentialsError = creds.FileError

// ErrNoURL reports credentials without the address of a server.
var ErrNoURL = creds.ErrNoURL

// ConnectConfig configures a connection to an external NATS server.
type ConnectConfig struct {
	URL   string       // "nats://host:4222", several with commas between; default nats.DefaultURL
	Creds string       // file with credentials, as nsc writes it, of a key's seed, or a context; default: none but what the URL holds
	Name  string       // of the connection, as the server's operator sees it; default "flowhost"
	Log   *slog.Logger // default: none
}

// Connect connects to an external NATS server. It waits for one that does not
// answer until ctx ends; credentials or an address that cannot be right are an error
// at once. The connection, once made, reconnects whenever it breaks. The
// caller closes it.
func Connect(ctx context.Context, cfg ConnectConfig) (*nats.Conn, error) {
	log := jskit.Logger(cfg.Log)
	opts := append(ConnectionOptions(log), nats.Name("flowhost"), nats.CustomInboxPrefix(InboxEngine))
	if cfg.Name != "" {
		opts = append(opts, nats.Name(cfg.Name))
	}
	if cfg.Creds != "" {
		login, err := creds.Read(cfg.Creds)
		if err != nil {
			return nil, fmt.Errorf("connecting to NATS: %w", err)
		}
		opts = append(opts, login.By)
		if login.Inbox != "" {
			opts = append(opts, nats.CustomInboxPrefix(login.Inbox))
		}
	}
	address := cfg.URL
	if address == "" {
		address = nats.DefaultURL
	}
	p := jskit.Backoff{Log: log, What: "connect to NATS"}
	for {
		nc, err := nats.Connect(address, opts...)
		if err == nil {
			p.Done()
			return nc, nil
		}
		if hopeless(err) {
			return nil, fmt.Errorf("connecting to NATS: %w", err)
		}
		if cause := p.Wait(ctx, err); cause != nil {
			return nil, fmt.Errorf("connecting to NATS: %w (%w)", cause, err)
		}
	}
}

// hopeless reports whether a first connection cannot come about by waiting: what
// is wrong is in the configuration.
func hopeless(err error) bool {
	for _, wrong := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
		fs.ErrNotExist, fs.ErrPermission,
	} {
		if errors.Is(err, wrong) {
			return true
		}
	}
	var address *url.Error
	return errors.As(err, &address)
}

// ConnectionOptions are the options of every connection: it reconnects without end, and
// each change of its state is one line of the log.
func ConnectionOptions(log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a server that comes up may refuse until it has loaded its accounts
		nats.CustomReconnectDelay(jskit.ReconnectDelay),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				log.Warn("the connection to NATS is lost", "name", nc.Opts.Name, "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connected to NATS again", "name", nc.Opts.Name, "url", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Error("NATS reports an error", "name", nc.Opts.Name, "subject", subject, "error", err)
		}),
	}
}
