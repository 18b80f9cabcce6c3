package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Follower follows all events of a host by a cursor, across its restarts. The zero
// value begins with the first event.
type Follower struct {
	mu    sync.Mutex
	after string
	pages []page // not yet returned by next
}

// page is an answer of fh.v1.api.follow.
type page struct {
	Events []json.RawMessage `json:"events"`
	Next   string            `json:"next"`
	Reset  bool              `json:"reset"`
}

// followLimit is the maximum number of events in a page.
const followLimit = 1000

// Run fetches pages until ctx ends or the connection is closed.
func (f *Follower) Run(ctx context.Context, nc *nats.Conn) {
	for ctx.Err() == nil && !nc.IsClosed() {
		p, err := f.ask(ctx, nc)
		if err != nil {
			sleep(ctx, 50*time.Millisecond) // the host is down, or the answer was lost
			continue
		}
		f.mu.Lock()
		f.pages = append(f.pages, p)
		f.mu.Unlock()
	}
}

// next returns the next page. It waits for events for a while.
func (f *Follower) next(ctx context.Context, nc *nats.Conn) (page, error) {
	f.mu.Lock()
	if len(f.pages) > 0 {
		p := f.pages[0]
		f.pages = f.pages[1:]
		f.mu.Unlock()
		return p, nil
	}
	f.mu.Unlock()
	for {
		p, err := f.ask(ctx, nc)
		if !errors.Is(err, errUnavailable) {
			return p, err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// errUnavailable is the answer of a host whose streams have no leader.
var errUnavailable = errors.New("unavailable")

// ask sends one request and moves the cursor.
func (f *Follower) ask(ctx context.Context, nc *nats.Conn) (p page, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	f.mu.Lock()
	after := f.after
	f.mu.Unlock()
	body, err := json.Marshal(map[string]any{"after": after, "limit": followLimit})
	if err != nil {
		return p, err
	}
	reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: "fh.v1.api.follow", Header: nats.Header{"Fh-Wait": {"1s"}}, Data: body})
	if err != nil {
		return p, err
	}
	switch code := reply.Header.Get("Nats-Service-Error-Code"); code {
	case "":
	case errUnavailable.Error():
		return p, fmt.Errorf("follow: %w: %s", errUnavailable, reply.Data)
	default:
		return p, fmt.Errorf("follow: %s: %s", code, reply.Data)
	}
	if err := json.Unmarshal(reply.Data, &p); err != nil {
		return p, fmt.Errorf("follow: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = p.Next
	return p, nil
}
