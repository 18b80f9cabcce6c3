package mail

import (
	"context"
	"math"
	"sync"

	"golang.org/x/time/rate"

	"github.com/flowhost/flowhost/run/access"
)

// maxGates bounds the gates that are kept while unused. A rate is forgotten with its gate.
const maxGates = 256

// gates is the table of the bounds of connections.
type gates struct {
	mu    sync.Mutex
	table map[gateKey]*gate
}

// gateKey is a connection, as long as its bounds do not change.
type gateKey struct {
	folder, name string
	limit        access.Limit
}

// gate bounds how many mails of a connection are under way, and how many begin.
type gate struct {
	slots chan struct{}
	rate  *rate.Limiter // nil: unbounded
	users int
}

// take returns the gate of a connection. It must be given back.
func (all *gates) take(c *access.Connection) *gate {
	key := gateKey{c.Folder, c.Name, c.Limit}
	all.mu.Lock()
	defer all.mu.Unlock()
	g := all.table[key]
	if g == nil {
		if len(all.table) >= maxGates {
			for other, unused := range all.table {
				if unused.users == 0 {
					delete(all.table, other)
				}
			}
		}
		if all.table == nil {
			all.table = map[gateKey]*gate{}
		}
		g = newGate(c.Limit)
		all.table[key] = g
	}
	g.users++
	return g
}

func (all *gates) give(g *gate) {
	all.mu.Lock()
	defer all.mu.Unlock()
	g.users--
}

func newGate(limit access.Limit) *gate {
	if limit.Concurrency <= 0 {
		limit.Concurrency = access.DefaultConcurrency
	}
	g := &gate{slots: make(chan struct{}, limit.Concurrency)}
	if limit.Rate > 0 {
		if limit.Burst <= 0 {
			limit.Burst = int(math.Ceil(min(limit.Rate, 1<<20))) // those of one second
		}
		g.rate = rate.NewLimiter(rate.Limit(limit.Rate), limit.Burst)
	}
	return g
}

// enter waits for a slot and for the rate. Without a fault, leave must follow.
func (g *gate) enter(ctx context.Context) *access.Fault {
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return ended(ctx)
	}
	if g.rate == nil || g.rate.Wait(ctx) == nil {
		return nil
	}
	g.leave()
	if fault := ended(ctx); fault != nil {
		return fault
	}
	return &access.Fault{Code: access.CodeTimeout, Retryable: true,
		Message: "the mail was not sent: the rate of the connection leaves no place for it in the time that is left"}
}

func (g *gate) leave() { <-g.slots }
