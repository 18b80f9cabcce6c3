package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Shares of the places for requests that wait: clients leave some to the operator, and
// each connection leaves some to others.
const (
	operatorShare   = 8  // one of so many places is the operator's
	connectionShare = 16 // a connection may have one of so many
)

// goneEvery is how often the waiting room looks whether those who wait are still there.
const goneEvery = 2 * time.Second

// errGone ends a wait whose requester has closed its connection.
var errGone = errors.New("the requester has gone")

// Requester is the connection that a request came from, as the server names it to the
// engine. The zero value is unknown: somebody in the engine's own account.
type Requester struct {
	Account string    `json:"acc"`
	User    string    `json:"user"`
	Client  uint64    `json:"id"`
	Server  string    `json:"server"`
	Start   time.Time `json:"start"`
}

// headerRequester is set by the server on what takes a service import that shares the
// requester's identity. It replaces one that the requester has set itself.
const headerRequester = "Nats-Request-Info"

func requesterOf(h nats.Header) (r Requester) {
	if text := h.Get(headerRequester); text != "" {
		_ = json.Unmarshal([]byte(text), &r) // without it the requester is unknown
	}
	return r
}

// key names the connection.
func (r Requester) key() string { return r.Server + "/" + strconv.FormatUint(r.Client, 10) }

// waitingRoom holds the places of requests that wait for something to happen.
type waitingRoom struct {
	places int
	config waitingConfig

	mu    sync.Mutex
	taken int
	by    map[string]map[*stay]bool
}

// waitingConfig says who is who. Its zero value takes all requesters for one.
type waitingConfig struct {
	// Operator is the account whose requests find a reserve of places. Empty: requests
	// do not say where they come from in a way that can be trusted.
	Operator string
	// Connected reports whether the requester's connection is still there. nil: nobody
	// knows.
	Connected func(Requester) bool
}

// stay is a place in the waiting room, or none for a request that does not wait.
type stay struct {
	wait time.Duration
	room *waitingRoom
	who  Requester

	gone bool                    // the requester has; guarded by room.mu
	end  context.CancelCauseFunc // of the wait; guarded by room.mu, nil before within
}

func newWaitingRoom(places int, cfg waitingConfig) *waitingRoom {
	return &waitingRoom{places: places, config: cfg, by: map[string]map[*stay]bool{}}
}

// enter takes a place, which must be left once. Its errors are for the requester.
func (w *waitingRoom) enter(who Requester, wait time.Duration) (*stay, error) {
	if wait == 0 {
		return &stay{}, nil
	}
	s := &stay{wait: wait, room: w, who: who}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.config.Operator == "" {
		s.who = Requester{}
	}
	limit, share := w.limits(s.who)
	switch mine := len(w.by[s.who.key()]); {
	case mine >= share:
		return nil, fmt.Errorf("%d requests of this connection wait, which is its share: try again later, or without the header %s", mine, HeaderWait)
	case w.taken >= limit:
		return nil, fmt.Errorf("%d requests wait, which is the limit: try again later, or without the header %s", w.taken, HeaderWait)
	}
	if w.by[s.who.key()] == nil {
		w.by[s.who.key()] = map[*stay]bool{}
	}
	w.by[s.who.key()][s] = true
	w.taken++
	return s, nil
}

// limits gives the number of places that must not be taken yet for the requester to
// take one, and how many it may have.
func (w *waitingRoom) limits(who Requester) (limit, share int) {
	// Without an account the requester is in the engine's own.
	if w.config.Operator == "" || who.Account == "" || who.Account == w.config.Operator {
		return w.places, w.places
	}
	return w.places - w.places/operatorShare, max(w.places/connectionShare, 1)
}

// within gives a context that ends with the wait, or with errGone.
func (s *stay) within(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, s.wait)
	ctx, end := context.WithCancelCause(ctx)
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.end = end
	if s.gone {
		end(errGone)
	}
	return ctx, func() { end(nil); cancel() }
}

func (s *stay) leave() {
	if s.room == nil {
		return
	}
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	all := s.room.by[s.who.key()]
	delete(all, s)
	if len(all) == 0 {
		delete(s.room.by, s.who.key())
	}
	s.room.taken--
}

// sweep gives up the waits of connections that have been closed, until ctx ends.
func (w *waitingRoom) sweep(ctx context.Context) {
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

func (w *waitingRoom) giveUp() {
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
