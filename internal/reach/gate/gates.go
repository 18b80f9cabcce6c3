package gate

import (
	"sync"

	"github.com/flowhost/flowhost/run/access"
)

// MaxGates bounds the gates that a table keeps while they are unused. The rate of an unused
// gate is forgotten with it.
const MaxGates = 1024

// Key is what shares a gate: the operations of a connection, as long as its limit does not
// change, or those of a flow without a connection.
type Key struct {
	Flow, Folder, Name string
	Limit              access.Limit
}

// KeyOf is the key of an operation of a flow; nil: without a connection.
func KeyOf(c *access.Connection, flow string) Key {
	if c == nil {
		return Key{Flow: flow}
	}
	return Key{Folder: c.Folder, Name: c.Name, Limit: c.Limit}
}

// Table has the gates of a driver.
type Table struct {
	notDone string

	mu    sync.Mutex
	gates map[Key]*Gate
	taken uint64
}

// NewTable makes a table without gates; notDone is that of [New].
func NewTable(notDone string) *Table { return &Table{notDone: notDone, gates: map[Key]*Gate{}} }

// Take returns the gate of a key. [Table.Give] must follow.
func (t *Table) Take(key Key) *Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gates[key]
	if g == nil {
		t.shrink()
		g = New(key.Limit, t.notDone)
		g.key = key
		t.gates[key] = g
	}
	t.taken++
	g.used = t.taken
	g.users++
	return g
}

// Give ends the use of a gate.
func (t *Table) Give(g *Gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g.users--
}

// shrink removes the gate that was unused for longest, if there are too many.
func (t *Table) shrink() {
	if len(t.gates) < MaxGates {
		return
	}
	var oldest *Gate
	for _, g := range t.gates {
		if g.users == 0 && (oldest == nil || g.used < oldest.used) {
			oldest = g
		}
	}
	if oldest != nil {
		delete(t.gates, oldest.key)
	}
}
