package httpreach

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"reflect"
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
	last  map[*access.Connection]lastKey // nil is the grant
	taken uint64
}

// lastKey spares an operation the digest when it has the policy of the one before.
type lastKey struct {
	policy access.Policy
	proxy  string
	key    [sha256.Size]byte
}

// take returns the lane of a policy and a connection. It must be given back.
func (all *lanes) take(c *Client, policy *access.Policy, connection *access.Connection, permit *permit, proxy *proxy) (*lane, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key, err := all.key(policy, connection, proxy)
	if err != nil {
		return nil, err
	}
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

// key is laneKey, remembered. Policies and connections do not change: others take their place.
func (all *lanes) key(policy *access.Policy, connection *access.Connection, proxy *proxy) ([sha256.Size]byte, error) {
	through := ""
	if proxy != nil {
		through = proxy.url.String()
	}
	last, found := all.last[connection]
	if found && last.proxy == through && reflect.DeepEqual(&last.policy, policy) {
		return last.key, nil
	}
	key, err := laneKey(policy, connection, through)
	if err != nil {
		return key, err
	}
	if all.last == nil || len(all.last) >= maxLanes {
		all.last = map[*access.Connection]lastKey{}
	}
	all.last[connection] = lastKey{*policy, through, key}
	return key, nil
}

// laneKey is the digest of all that decides on a network connection.
func laneKey(policy *access.Policy, connection *access.Connection, proxy string) (key [sha256.Size]byte, err error) {
	text, err := json.Marshal([]any{policy, connection, proxy})
	if err != nil {
		return key, err // a rate that is no number
	}
	return sha256.Sum256(text), nil
}
