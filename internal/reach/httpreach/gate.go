package httpreach

import (
	"context"
	"math"
	"sync"

	"golang.org/x/time/rate"

	"github.com/flowhost/flowhost/run/access"
)

// maxGates bounds the gates that are kept while unused. A rate is forgotten with its gate.
const maxGates = 1024

// gateKey is what shares a bound: a connection as long as its bound does not change, or the
// requests of one flow without a connection.
type gateKey struct {
	flow, folder, name string
	limit              access.Limit
}

// gate bounds how many operations are under way and how many tries start.
type gate struct {
	key   gateKey
	slots chan struct{}
	rate  *rate.Limiter // nil: unbounded
	users int
	used  uint64
}

type gates struct {
	mu    sync.Mutex
	table map[gateKey]*gate
	taken uint64
}

// take returns the gate of an operation. It must be given back.
func (all *gates) take(x *exchange) *gate {
	key := gateKey{flow: x.caller.Flow}
	if x.connection != nil {
		key = gateKey{folder: x.connection.Folder, name: x.connection.Name, limit: x.connection.Limit}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	g := all.table[key]
	if g == nil {
		all.shrink()
		g = newGate(key)
		if all.table == nil {
			all.table = map[gateKey]*gate{}
		}
		all.table[key] = g
	}
	all.taken++
	g.used = all.taken
	g.users++
	return g
}

func (all *gates) give(g *gate) {
	all.mu.Lock()
	defer all.mu.Unlock()
	g.users--
}

// shrink removes the gate that was unused for longest, if there are too many.
func (all *gates) shrink() {
	if len(all.table) < maxGates {
		return
	}
	var oldest *gate
	for _, g := range all.table {
		if g.users == 0 && (oldest == nil || g.used < oldest.used) {
			oldest = g
		}
	}
	if oldest != nil {
		delete(all.table, oldest.key)
	}
}

func newGate(key gateKey) *gate {
	limit := key.limit
	if limit.Concurrency <= 0 {
		limit.Concurrency = access.DefaultConcurrency
	}
	g := &gate{key: key, slots: make(chan struct{}, limit.Concurrency)}
	if limit.Rate > 0 {
		if limit.Burst <= 0 {
			limit.Burst = int(math.Ceil(min(limit.Rate, 1<<20))) // those of one second
		}
		g.rate = rate.NewLimiter(rate.Limit(limit.Rate), limit.Burst)
	}
	return g
}

// enter waits for a slot.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errOf(ctx)
	}
}

func (g *gate) leave() { <-g.slots }

// wait waits for the rate. It fails at once when the time left is too short.
func (g *gate) wait(ctx context.Context) error {
	if g.rate == nil || g.rate.Wait(ctx) == nil {
		return nil
	}
	if err := errOf(ctx); err != nil {
		return err
	}
	return &access.Fault{
		Code: access.CodeTimeout, Retryable: true,
		Message: "the request was not sent: the rate of connection " + g.key.name + " leaves no place for it in the time that is left",
	}
}
