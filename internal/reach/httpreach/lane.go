package httpreach

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

const (
	maxLanes    = 64               // kept while unused
	laneAge     = 10 * time.Minute // after which files of certificates are read again
	idleTimeout = 90 * time.Second // of a network connection
)

// lane is the transport of one effective policy. A network connection was checked under the
// policy that opened it, and no other may use it.
type lane struct {
	key       [sha256.Size]byte
	transport *http.Transport
	dialer    *dialer
	made      time.Time
	used      uint64 // when it was last taken, as a count
	users     int
	dropped   bool // no longer in the table: it ends with its last user
}

// lanes is the table of them.
type lanes struct {
	mu    sync.Mutex
	table map[[sha256.Size]byte]*lane
	taken uint64
}

// take returns the lane of a policy and a connection. It must be given back.
func (all *lanes) take(c *Client, policy *access.Policy, connection *access.Connection, permit *permit, proxy *proxy) (*lane, error) {
	key, err := laneKey(policy, connection, proxy)
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	l := all.table[key]
	if l != nil && c.now().Sub(l.made) > laneAge {
		all.drop(l)
		l = nil
	}
	if l == nil {
		transport, dialer, err := newTransport(c.config.Resolver, connection, permit, proxy)
		if err != nil {
			return nil, err
		}
		all.shrink()
		l = &lane{key: key, transport: transport, dialer: dialer, made: c.now()}
		if all.table == nil {
			all.table = map[[sha256.Size]byte]*lane{}
		}
		all.table[key] = l
	}
	all.taken++
	l.used = all.taken
	l.users++
	return l, nil
}

func (all *lanes) give(l *lane) {
	all.mu.Lock()
	defer all.mu.Unlock()
	l.users--
	if l.dropped && l.users == 0 {
		l.close()
	}
}

// shrink makes place for one lane.
func (all *lanes) shrink() {
	if len(all.table) < maxLanes {
		return
	}
	var oldest *lane
	for _, l := range all.table {
		if oldest == nil || l.used < oldest.used {
			oldest = l
		}
	}
	all.drop(oldest)
}

func (all *lanes) drop(l *lane) {
	delete(all.table, l.key)
	l.dropped = true
	if l.users == 0 {
		l.close()
	}
}

func (l *lane) close() {
	l.transport.CloseIdleConnections()
	l.dialer.close()
}

// close ends the lanes, none of which has a user.
func (all *lanes) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, l := range all.table {
		all.drop(l)
	}
}

// laneKey is the digest of all that decides on a network connection.
func laneKey(policy *access.Policy, connection *access.Connection, proxy *proxy) (key [sha256.Size]byte, err error) {
	parts := []any{policy, connection, ""}
	if proxy != nil {
		parts[2] = proxy.url.String()
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return key, err // a rate that is no number
	}
	return sha256.Sum256(text), nil
}
