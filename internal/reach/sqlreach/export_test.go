package sqlreach

import (
	"database/sql"
	"fmt"
)

var (
	AppendValue = appendValue
	DecodeArg   = decodeArg
	Scan        = scan
	Judge       = judge
	ParseDSN    = parseDSN
)

// Stats are the pools' counts, by name of the connection.
func (p *Pools) Stats() map[string]sql.DBStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]sql.DBStats{}
	for _, one := range p.pools {
		all[one.name] = one.db.Stats()
	}
	return all
}

// Count is the number of pools.
func (p *Pools) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pools)
}

// Taken is the number of connections that sessions have of all pools.
func (p *Pools) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, one := range p.pools {
		one.mu.Lock()
		n += one.taken
		one.mu.Unlock()
	}
	return n
}

// String shows all of a DSN.
func (d *dsn) String() string {
	return fmt.Sprint(d.user, " ", d.password, " ", d.host, " ", d.port, " ", d.socket, " ", d.database, " ", d.params)
}
