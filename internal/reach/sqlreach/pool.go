package sqlreach

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/flowhost/flowhost/internal/reach/gate"
	"github.com/flowhost/flowhost/run/access"
)

// returnTime bounds what giving a connection back may take on the network.
const returnTime = 2 * time.Second

// pool is the connections to one database.
type pool struct {
	name    string
	key     key
	engine  *engine
	db      *sql.DB
	maxOpen int
	maxIdle time.Duration
	gate    *gate.Gate       // of leases; statements start at its rate
	hide    []*regexp.Regexp // what guests may not see
	secret  []*regexp.Regexp // what nobody may

	// Guarded by the lock of Pools.
	uses, names int
	used        time.Time

	mu     sync.Mutex
	taken  int      // connections that sessions have, parked ones included, or wait for
	parked []*lease // of sessions that have no use for them right now, the oldest first
}

// lease is a connection that a session has.
type lease struct {
	pool    *pool
	conn    *sql.Conn
	base    context.Context // with the values of the operation that took it, without its end
	changed bool            // the state of the session may have changed
	broken  bool
}

// open makes a pool.
func (p *Pools) open(c *access.Connection, found parts) (*pool, *access.Fault) {
	one := &pool{name: c.Name, maxOpen: cmp.Or(c.SQL.MaxOpen, access.DefaultMaxOpen), maxIdle: cmp.Or(c.SQL.MaxIdle, DefaultMaxIdle), used: p.config.Now()}
	if c.Limit.Concurrency > 0 {
		one.maxOpen = min(one.maxOpen, c.Limit.Concurrency)
	}
	limit := c.Limit
	limit.Concurrency = one.maxOpen
	one.gate = gate.New(limit, "the statement was not run")
	e, f := p.engineOf(c, found, one)
	if f != nil {
		return nil, f
	}
	one.engine = e
	one.db = sql.OpenDB(e.connector)
	one.db.SetMaxOpenConns(one.maxOpen)
	one.db.SetMaxIdleConns(one.maxOpen)
	one.db.SetConnMaxIdleTime(one.maxIdle)
	return one, nil
}

func (p *Pools) engineOf(c *access.Connection, found parts, one *pool) (*engine, *access.Fault) {
	if c.Type == access.TypeSQLite {
		one.hide = hiding([]string{c.Folder, c.SQL.Path, filepath.Join(c.Folder, filepath.FromSlash(c.SQL.Path))})
		return sqliteEngine(c)
	}
	d, f := parseDSN(c.Type, found.DSN)
	if f != nil {
		return nil, f
	}
	if d.socket != "" && !c.Operator {
		return nil, denied("private address", "the DSN names a unix socket, which only connections of the operator's settings may use")
	}
	one.hide, one.secret = hiding(d.parts(found.DSN)), hiding([]string{found.DSN, d.password})
	config, f := tlsConfig(c, d, found.Files)
	if f != nil {
		return nil, f
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return p.config.Dial(ctx, c, network, address)
	}
	if c.Type == access.TypePostgres {
		return postgres(d, c.SQL.Access, config, dial)
	}
	return mysqlEngine(d, c.SQL.Access, config, dial)
}

func (p *pool) close() {
	_ = p.db.Close() // connections are closed whatever they answer
}

// take waits for a connection, at which flows take turns. When all are in use, a parked one is
// taken from its session.
func (p *pool) take(ctx context.Context, flow string) (*lease, *access.Fault) {
	p.mu.Lock()
	p.taken++
	var idle *lease
	if p.taken > p.maxOpen && len(p.parked) > 0 {
		idle, p.parked = p.parked[0], p.parked[1:]
	}
	p.mu.Unlock()
	if idle != nil {
		idle.giveBack()
	}
	if f := p.gate.Enter(ctx, flow); f != nil {
		p.count(-1)
		return nil, f
	}
	l, err := p.open(ctx)
	// Connections that broke while nobody used them show now, one after the other.
	for tries := 0; err != nil && p.ended(err) && ctx.Err() == nil && l != nil && tries < p.maxOpen; tries++ {
		l, err = p.open(ctx)
	}
	if err != nil {
		p.leave()
		return nil, p.connectFault(ctx, err)
	}
	return l, nil
}

// ended reports whether an error means that the connection or its session has ended.
func (p *pool) ended(err error) bool {
	if broken(err) {
		return true
	}
	f := p.engine.fault(err)
	return f != nil && f.Code == access.CodeUnreachable
}

// leave lets the next session have a connection.
func (p *pool) leave() {
	p.count(-1)
	p.gate.Leave()
}

// open gets a connection of the pool or a new one. With an error, the lease is nil when no
// connection could be had at all.
func (p *pool) open(ctx context.Context) (*lease, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &lease{pool: p, conn: conn, base: context.WithoutCancel(ctx)}
	if err = p.engine.ready(ctx, conn); err != nil {
		l.drop()
	}
	return l, err
}

func (p *pool) count(n int) {
	p.mu.Lock()
	p.taken += n
	p.mu.Unlock()
}

// park lets others take the connection until unpark. A connection for which somebody waits
// is given back instead, and park reports false.
func (l *lease) park() bool {
	p := l.pool
	p.mu.Lock()
	stays := p.taken <= p.maxOpen
	if stays {
		p.parked = append(p.parked, l)
	}
	p.mu.Unlock()
	if !stays {
		l.giveBack()
	}
	return stays
}

// unpark takes the connection back, and reports false when somebody else has it.
func (l *lease) unpark() bool {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.parked, l)
	if at < 0 {
		return false
	}
	p.parked = slices.Delete(p.parked, at, at+1)
	return true
}

// giveBack returns the connection to the pool, pristine, or closes it.
func (l *lease) giveBack() {
	ctx, cancel := context.WithTimeout(l.base, returnTime)
	defer cancel()
	drop := l.broken || l.changed && l.pool.engine.reset == nil
	if !drop && l.pool.engine.reset != nil {
		drop = l.pool.engine.reset(ctx, l.conn) != nil
	}
	if drop {
		l.drop()
	} else {
		_ = l.conn.Close() // which gives it back
	}
	l.pool.leave()
}

// drop closes the connection.
func (l *lease) drop() {
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn }) // which closes it
	_ = l.conn.Close()                                           // an error that says that it is closed
}

// connectFault is the fault of a connection that could not be opened. Errors of drivers
// name user, host and database: only their kind is repeated.
func (p *pool) connectFault(ctx context.Context, err error) *access.Fault {
	var own *access.Fault
	if errors.As(err, &own) {
		return p.concealed(own)
	}
	f := ended(ctx)
	if f != nil && f.Code == access.CodeTimeout {
		f.Message = "no connection to the database was opened in time: the server does not answer"
	}
	if f == nil {
		f = certificateFault(err)
	}
	if f == nil {
		if f = p.engine.fault(err); f != nil {
			f = connectRefused(f)
		}
	}
	if f == nil {
		f = unreachable("the database cannot be reached: check the address in the DSN, and that the server is running and accepts TLS as the connection declares it")
	}
	f.Target = p.name
	inside := *f
	inside.Message += ": " + scrub(p.secret, err.Error())
	f.Inside = &inside
	return f
}

// concealed is a fault of the dialer without the address that it refuses.
func (p *pool) concealed(own *access.Fault) *access.Fault {
	guest, inside := *own, *own.Full()
	inside.Inside = nil
	guest.Target, guest.Inside = p.name, &inside
	if guest.Rule == "private address" {
		guest.Message = "connection " + p.name + " refused: its address is not public, and the connection or the operator does not name it"
		guest.Add = ""
	}
	guest.Message, guest.Add = scrub(p.hide, guest.Message), scrub(p.hide, guest.Add)
	return &guest
}

// connectRefused words the server's refusal by its code.
func connectRefused(f *access.Fault) *access.Fault {
	switch {
	case f.Rule == ruleTLS:
	case f.Detail == "": // no code of a database
		return unreachable("the server does not speak the protocol of this type of database: check host, port and type")
	case f.Code == access.CodeRefused:
		f.Message = "the database refused the connection: check user, password, database and permissions"
	case f.Code == access.CodeUnreachable:
		f.Message = "the database accepts no connection right now: it starts, stops, or has too many"
	}
	return f
}

// ruleTLS is the rule of faults of TLS.
const ruleTLS = "tls"

// noTLS is the fault of a server that offers no TLS.
func noTLS() *access.Fault {
	return &access.Fault{Code: access.CodeRefused, Rule: ruleTLS,
		Message: `the database offers no TLS, which the connection requires: enable TLS on the server, or write tls { mode = "disable" } to connect without encryption`}
}

// certificateFault words what was wrong with a certificate.
func certificateFault(err error) *access.Fault {
	var (
		unknown  x509.UnknownAuthorityError
		host     x509.HostnameError
		validity x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
	)
	message := ""
	switch {
	case errors.As(err, &unknown):
		message = "is signed by an authority that the host does not know: name it in tls { ca }"
	case errors.As(err, &host):
		message = "is for another name than the host in the DSN: write the name of the certificate as tls { server_name }"
	case errors.As(err, &validity) && validity.Reason == x509.Expired:
		message = "has expired or is not valid yet: renew it on the server, and check the clock of the host"
	case errors.As(err, &validity):
		message = "is not valid: replace it on the server"
	case errors.As(err, &verify):
		message = "cannot be verified"
	default:
		return nil
	}
	return &access.Fault{Code: access.CodeRefused, Rule: ruleTLS, Message: "the certificate of the database " + message}
}

func secretFault(err error) *access.Fault {
	var own *access.Fault
	if errors.As(err, &own) {
		return own
	}
	return &access.Fault{Code: access.CodeInternal, Message: "the secret of the DSN cannot be resolved"}
}
