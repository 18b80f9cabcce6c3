package sqlreach

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// Config is what pools need. Secrets and Dial are required.
type Config struct {
	Secrets access.Secrets

	// Dial opens the network connections of servers. It decides on addresses: c is the
	// connection as the flow sees it, with the private addresses that both author and
	// operator allow it. network is "tcp" or "unix"; a unix socket is dialed for connections
	// of the operator only.
	Dial func(ctx context.Context, c *access.Connection, network, address string) (net.Conn, error)

	Log *slog.Logger     // default: none
	Now func() time.Time // default: time.Now
}

// dialer is Dial for one connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DefaultMaxIdle is how long an unused connection stays open, for those who set nothing.
const DefaultMaxIdle = 5 * time.Minute

// Pools are the pools of database connections of a host. They outlive reloads: a pool is
// found by everything that makes a connection what it is, and closed when nothing asks for
// it any more.
type Pools struct {
	config Config

	mu     sync.Mutex
	closed bool
	pools  map[key]*pool
	names  map[identity]*pool // what each name of a flow led to last
}

// key is the digest of what makes a connection what it is.
type key [sha256.Size]byte

// identity is a connection as flows name it.
type identity struct{ flow, folder, name string }

// New makes pools, without opening a connection. It comes before any other use of SQLite in
// the process, whose memory it bounds.
func New(config Config) *Pools {
	boundMemory()
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Pools{config: config, pools: map[key]*pool{}, names: map[identity]*pool{}}
}

// Session begins the use of databases by one attempt. resolve gives the connection of a
// name, or the fault that denies it; it is asked for each operation. Its result must not
// be changed afterwards.
func (p *Pools) Session(caller access.Caller, resolve func(name string) (*access.Connection, *access.Fault)) *Session {
	return &Session{pools: p, caller: caller, resolve: resolve, holds: map[string]*hold{}}
}

// Test tries a connection as the given flow sees it: address, TLS, credentials and a query.
// Its error is an [access.Fault].
func (p *Pools) Test(ctx context.Context, flow string, c *access.Connection) error {
	s := p.Session(access.Caller{Flow: flow}, func(string) (*access.Connection, *access.Fault) { return c, nil })
	defer s.Close()
	head, err := json.Marshal(map[string]string{"connection": c.Name, "sql": "SELECT 1"})
	if err != nil {
		return err
	}
	if answer := s.Do(ctx, &access.Operation{Kind: access.KindSQLQuery, Head: head}); answer.Fault != nil {
		return answer.Fault
	}
	return nil
}

// Close closes all pools. Sessions must be closed before. It waits for nothing but the
// closing of sockets.
func (p *Pools) Close() {
	p.mu.Lock()
	p.closed = true
	all := p.pools
	p.pools, p.names = map[key]*pool{}, map[identity]*pool{}
	p.mu.Unlock()
	for _, one := range all {
		one.close()
	}
}

// get finds or makes the pool of a connection and counts its use; put ends that.
func (p *Pools) get(ctx context.Context, flow string, c *access.Connection) (*pool, *access.Fault) {
	parts, f := p.partsOf(ctx, flow, c)
	if f != nil {
		return nil, f
	}
	k, f := parts.key()
	if f != nil {
		return nil, f
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &access.Fault{Code: access.CodeCanceled, Message: "the host is shutting down"}
	}
	one := p.pools[k]
	if one == nil {
		if one, f = p.open(c, parts); f != nil {
			return nil, f
		}
		one.key = k
		p.pools[k] = one
	}
	one.uses++
	p.lead(identity{flow, c.Folder, c.Name}, one)
	p.sweep()
	return one, nil
}

// lead notes where a name leads, and closes the pool to which it led before when no name
// leads there and nobody uses it.
func (p *Pools) lead(id identity, one *pool) {
	before := p.names[id]
	if before == one {
		return
	}
	p.names[id] = one
	one.names++
	if before != nil {
		before.names--
		p.closeUnused(before)
	}
}

// put ends a use of a pool.
func (p *Pools) put(one *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.uses--
	one.used = p.config.Now()
	p.closeUnused(one)
}

func (p *Pools) closeUnused(one *pool) {
	if one.uses > 0 || one.names > 0 {
		return
	}
	if p.pools[one.key] == one {
		delete(p.pools, one.key)
	}
	one.close()
	p.config.Log.Debug("closed the pool of a database connection that has changed", "connection", one.name)
}

// sweep closes pools that were not used for a while: their connections are closed already.
func (p *Pools) sweep() {
	now := p.config.Now()
	for id, one := range p.names {
		if one.uses == 0 && now.Sub(one.used) > one.maxIdle {
			delete(p.names, id)
			one.names--
			p.closeUnused(one)
		}
	}
}

// parts is everything that makes a connection what it is.
type parts struct {
	Connection access.Connection
	DSN        string
	Files      tlsFiles
}

func (p *Pools) partsOf(ctx context.Context, flow string, c *access.Connection) (parts, *access.Fault) {
	found := parts{Connection: *c}
	switch {
	case c.SQL == nil:
		return found, invalid("connection %q is of type %s, and sql operations need postgres, mysql or sqlite", c.Name, c.Type)
	case c.Proxy != nil:
		return found, invalid("connection %q has a proxy, which databases do not support: remove it", c.Name)
	case c.Type == access.TypeSQLite:
		return found, nil
	}
	text, err := c.SQL.DSN.Resolve(ctx, p.config.Secrets, flow)
	if err != nil {
		return found, secretFault(err)
	}
	found.DSN = text
	files, f := readTLS(c)
	found.Files = files
	return found, f
}

func (p parts) key() (key, *access.Fault) {
	text, err := json.Marshal(p)
	if err != nil {
		return key{}, &access.Fault{Code: access.CodeInternal, Message: "the connection cannot be identified"}
	}
	return sha256.Sum256(text), nil
}
