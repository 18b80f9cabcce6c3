package sqlreach

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/flowhost/flowhost/run/access"
)

// maxMessageBody bounds a message of the server, which is held as a whole: a row that is
// longer is far above a page.
const maxMessageBody = 8 << 20

// cancelWait is how long a canceled statement may take to end before its connection is cut.
const cancelWait = 500 * time.Millisecond

// pristine undoes what a statement may have done to a session. Statements that the driver
// has prepared stay, which DISCARD ALL would drop.
const pristine = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; DISCARD SEQUENCES; DISCARD TEMP"

// everySetting keeps the parser of connection strings from every setting of the host's
// environment and of its user's files. The values are replaced afterwards.
const everySetting = "host=localhost port=5432 user=x password=x dbname=x sslmode=disable passfile='' connect_timeout=0 " +
	"target_session_attrs=any min_protocol_version=3.0 max_protocol_version=3.0 channel_binding=prefer require_auth='' " +
	"sslrootcert='' sslcert='' sslkey='' sslpassword='' sslnegotiation='' sslcertmode=disable"

func postgres(d *dsn, mode access.Mode, config *tls.Config, dial dialer) (*engine, *access.Fault) {
	cfg, err := pgx.ParseConfig(everySetting)
	if err != nil {
		return nil, &access.Fault{Code: access.CodeInternal,
			Message: "the environment of the host has a setting of PostgreSQL that cannot be used: unset PGSERVICE"}
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database = d.host, uint16(d.port), d.user, d.password, d.database
	if d.socket != "" {
		cfg.Host = filepath.Dir(socketFile(d))
	}
	cfg.TLSConfig, cfg.Fallbacks, cfg.SSLCertMode = config, nil, ""
	cfg.ConnectTimeout = d.timeout()
	cfg.KerberosSrvName, cfg.KerberosSpn, cfg.SSLNegotiation, cfg.ChannelBinding, cfg.RequireAuth = "", "", "", "prefer", ""
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.socket != "" {
			network, address = "unix", socketFile(d)
		}
		return dial(ctx, network, address)
	}
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil } // dial resolves names
	cfg.MaxProtocolMessageBodyLen = maxMessageBody
	cfg.RuntimeParams = map[string]string{"application_name": "flowhost", "client_encoding": "UTF8"}
	for _, name := range []string{"application_name", "search_path", "timezone"} {
		if value := d.params[name]; value != "" {
			cfg.RuntimeParams[name] = value
		}
	}
	if mode != access.ReadWrite {
		cfg.RuntimeParams["default_transaction_read_only"] = "on"
	}
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelWait}
	}
	return &engine{
		connector: stdlib.GetConnector(*cfg),
		ready:     readyPostgres, reset: resetPostgres, aborted: abortedPostgres,
		begin: beginPostgres, exec: execPostgres, fault: faultPostgres, form: formPostgres,
		timeArg: func(t time.Time) any { return t },
		wrapped: mode != access.ReadWrite,
	}, nil
}

// socketFile is the socket of a DSN that names its directory.
func socketFile(d *dsn) string {
	if strings.HasPrefix(filepath.Base(d.socket), ".s.PGSQL.") {
		return d.socket
	}
	return filepath.Join(d.socket, ".s.PGSQL."+strconv.Itoa(d.port))
}

func readyPostgres(ctx context.Context, conn *sql.Conn) error {
	left := leftMS(ctx)
	if left == 0 {
		return conn.PingContext(ctx)
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %[1]d", left))
	return err
}

func resetPostgres(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, pristine)
	return err
}

func abortedPostgres(conn *sql.Conn) bool {
	aborted := false
	err := conn.Raw(func(c any) error {
		aborted = c.(*stdlib.Conn).Conn().PgConn().TxStatus() != 'T'
		return nil
	})
	return aborted || err != nil
}

func beginPostgres(isolation string, readOnly bool) []string {
	text := "BEGIN"
	if isolation != "" {
		text += " ISOLATION LEVEL " + strings.ToUpper(isolation)
	}
	if readOnly {
		return []string{text + " READ ONLY"}
	}
	return []string{text + " READ WRITE"}
}

// execPostgres runs a statement as a query: the driver's Exec would send one without
// arguments by the simple protocol, which takes several statements.
func execPostgres(ctx context.Context, conn *sql.Conn, text string, args []any) (execHead, error) {
	var head execHead
	err := conn.Raw(func(c any) error {
		rows, err := c.(*stdlib.Conn).Conn().Query(ctx, text, args...)
		if err != nil {
			return err
		}
		rows.Close()
		head.RowsAffected = rows.CommandTag().RowsAffected()
		return rows.Err()
	})
	return head, err
}

func formPostgres(name string) form {
	switch name {
	case "DATE":
		return formDate
	case "JSON", "JSONB", "XML":
		return formText
	}
	return formPlain
}

func faultPostgres(err error) *access.Fault {
	var own *pgconn.PgError
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case strings.HasSuffix(err.Error(), "server refused TLS connection"): // the driver has no value for it
		return noTLS()
	case errors.As(err, &long):
		return &access.Fault{Code: access.CodeTooLarge, Message: "a row of the result is larger than a page: select fewer columns, or parts of the long ones"}
	case !errors.As(err, &own):
		return nil
	}
	f := server{code: own.Code, state: own.Code, message: own.Message}.fault()
	// After a change of the schema, a statement that was prepared before fails once.
	if own.Code == "0A000" && strings.HasPrefix(own.Message, "cached plan") {
		f.Retryable = true
	}
	return f
}
