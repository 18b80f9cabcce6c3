package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/api"
)

// Shares of the places: clients leave some to the operator, and each connection leaves
// some to others.
const (
	operatorShare   = 8  // one of so many places is the operator's
	connectionShare = 16 // a client's connection may have one of so many to wait
	followingShare  = 8  // and of those to follow events
)

// goneEvery is how often the wait list looks whether those who wait are still there.
const goneEvery = 2 * time.Second

// errGone ends a wait whose requester has closed its connection.
var errGone = errors.New("the requester has gone")

// headerRequester is set by the server on what takes a service import that shares the
// requester's identity. It replaces one that the requester has set itself.
const headerRequester = "Nats-Request-Info"

func requesterOf(h nats.Header) (r api.Requester) {
	if text := h.Get(headerRequester); text != "" {
		_ = json.Unmarshal([]byte(text), &r) // without it the requester is unknown
	}
	return r
}

// requesterConfig identifies requesters. Its zero value takes all of them for one.
type requesterConfig struct {
	// Operator is the account whose requests find a reserve of places. Empty: requests
	// do not prove where they come from.
	Operator string
	// Connected reports whether the requester's connection is still there. nil: nobody
	// knows.
	Connected func(api.Requester) bool
}

// callerOf gives the line in which a requester waits.
func (c requesterConfig) callerOf(r api.Requester) caller {
	if c.Operator == "" {
		return caller{operator: true}
	}
	// Without an account the requester is in the engine's own.
	return caller{r.Server + "/" + strconv.FormatUint(r.Client, 10), r.Account == "" || r.Account == c.Operator}
}

// waitList holds the places of requests that wait for something to happen.
type waitList struct {
	places, share int
	verb          string // what they do: "wait"
	config        requesterConfig

	mu    sync.Mutex
	taken int
	by    map[caller]map[*waiter]bool
}

// waiter is a place in a wait list.
type waiter struct {
	room   *waitList
	who    api.Requester
	caller caller

	gone bool                    // the requester has; guarded by room.mu
	end  context.CancelCauseFunc // of the wait; guarded by room.mu, nil before within
}

// newWaitList makes one with so many places, of which a client's connection may have
// one of so many.
func newWaitList(verb string, places, share int, cfg requesterConfig) *waitList {
	return &waitList{places: places, share: share, verb: verb, config: cfg, by: map[caller]map[*waiter]bool{}}
}

// enter takes a place, which must be left once. Its errors are for the requester.
func (w *waitList) enter(who api.Requester) (*waiter, error) {
	if w.config.Operator == "" {
		who = api.Requester{}
	}
	s := &waiter{room: w, who: who, caller: w.config.callerOf(who)}
	w.mu.Lock()
	defer w.mu.Unlock()
	limit, share := w.limits(s.caller)
	switch mine := len(w.by[s.caller]); {
	case mine >= share:
		return nil, fmt.Errorf("%d requests of this connection %s, which is its share: try again later", mine, w.verb)
	case w.taken >= limit:
		return nil, fmt.Errorf("%d requests %s, which is the limit: try again later", w.taken, w.verb)
	}
	if w.by[s.caller] == nil {
		w.by[s.caller] = map[*waiter]bool{}
	}
	w.by[s.caller][s] = true
	w.taken++
	return s, nil
}

// limits gives the number of places that must not be taken yet for the requester to
// take one, and how many it may have.
func (w *waitList) limits(who caller) (limit, share int) {
	if who.operator {
		return w.places, w.places
	}
	return w.places - w.places/operatorShare, max(w.places/w.share, 1)
}

// within gives a context that ends with the wait, or with errGone.
func (s *waiter) within(parent context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, wait)
	ctx, end := context.WithCancelCause(ctx)
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.end = end
	if s.gone {
		end(errGone)
	}
	return ctx, func() { end(nil); cancel() }
}

func (s *waiter) leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	all := s.room.by[s.caller]
	delete(all, s)
	if len(all) == 0 {
		delete(s.room.by, s.caller)
	}
	s.room.taken--
}

// sweep gives up the waits of connections that have been closed, until ctx ends.
func (w *waitList) sweep(ctx context.Context) {
	if w.config.Connected == nil {
		return
	}
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.giveUp()
		case <-ctx.Done():
			return
		}
	}
}

func (w *waitList) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.by {
		for s := range all {
			if s.who.Client == 0 || !s.gone && w.config.Connected(s.who) {
				break // all are of one connection
			}
			s.gone = true
			if s.end != nil {
				s.end(errGone)
			}
		}
	}
}
