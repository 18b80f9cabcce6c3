package natsd

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Bounds of what the embedded server keeps for connections of other programs, in bytes.
// They are looked at from time to time: the server's own bound, [maxPending], holds for
// the engine's connections, too, and those must never be closed for a burst of large
// messages.
const (
	backlogOfOne = 16 << 20 // two of the largest messages
	backlogOfAll = 64 << 20 // of all of them together
	backlogEvery = 25 * time.Millisecond
)

// The server is asked less often while nothing waits and this process sends and receives
// next to nothing: an idle host costs what wakes it.
const (
	backlogIdle  = 4 * backlogEvery
	backlogBytes = 64 << 10 // since the last look, from which on it is not idle
)

// watchBacklogs closes connections that do not read what comes for them, until ctx ends.
func (s *Server) watchBacklogs(ctx context.Context) {
	next := time.NewTimer(backlogEvery)
	defer next.Stop()
	var logged time.Time
	closed, moved := 0, uint64(0)
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		gone, waiting := s.closeBacklogs()
		if closed += gone; closed > 0 && time.Since(logged) >= clientLinesTime {
			s.log.Warn("connections were closed that do not read what comes for them", "connections", closed)
			closed, logged = 0, time.Now()
		}
		now := s.moved()
		if waiting || now-moved >= backlogBytes {
			next.Reset(backlogEvery)
		} else {
			next.Reset(backlogIdle)
		}
		moved = now
	}
}

// moved is how many bytes this process has sent and received.
func (s *Server) moved() (bytes uint64) {
	for _, nc := range s.connections() {
		stats := nc.Stats()
		bytes += stats.InBytes + stats.OutBytes
	}
	return bytes
}

// closeBacklogs closes the connections that are over their bound, and of the others those
// with the most until all together are within theirs. It reports whether anything waits.
func (s *Server) closeBacklogs() (closed int, waits bool) {
	ns := s.current()
	waiting := s.backlogs(ns)
	all := 0
	for _, c := range waiting {
		all += c.Pending
	}
	for _, c := range waiting {
		if c.Pending <= backlogOfOne && all <= backlogOfAll {
			break
		}
		all -= c.Pending
		if ns.DisconnectClientByID(c.Cid) == nil { // otherwise it has gone
			closed++
		}
	}
	return closed, len(waiting) > 0
}

// backlogs are the connections of other programs for which something waits, those with
// the most first.
func (s *Server) backlogs(ns *server.Server) server.ConnInfos {
	own := s.ownConnections()
	var waiting server.ConnInfos
	for _, account := range []string{accountClient, accountApp} {
		found, err := ns.Connz(&server.ConnzOptions{Account: account, Sort: server.ByPending})
		if err != nil {
			continue // the server is being stopped
		}
		for _, c := range found.Conns {
			if c.Pending > 0 && !own[c.Cid] {
				waiting = append(waiting, c)
			}
		}
	}
	slices.SortFunc(waiting, func(a, b *server.ConnInfo) int { return cmp.Compare(b.Pending, a.Pending) })
	return waiting
}

// ownConnections are the ids that the server has given to this process's connections.
func (s *Server) ownConnections() map[uint64]bool {
	ids := map[uint64]bool{}
	for _, nc := range s.connections() {
		if id, err := nc.GetClientID(); err == nil {
			ids[id] = true
		}
	}
	return ids
}

// connections are this process's. Whoever asks one of them must not hold the server's lock:
// a connection that comes back holds its own while it asks for the server of the moment.
func (s *Server) connections() []*nats.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}
