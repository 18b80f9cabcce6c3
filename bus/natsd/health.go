package natsd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// DefaultMargin is how many bytes must be free on the disk of the data directory.
const DefaultMargin = 128 << 20

// Room reports whether the server may be asked to write out its files: ErrNoRoom
// while less than DefaultMargin is free on their disk.
func (s *Server) Room() error {
	if free, err := FreeSpace(s.Dir()); err != nil || free < DefaultMargin {
		return cmp.Or(err, jskit.ErrNoRoom)
	}
	return nil
}

// WriteError is the reason why a NATS server takes no messages until it is started again.
type WriteError string

func (e WriteError) Error() string { return string(e) }

// Health reports what is wrong with the server: nil when it can be used.
func (s *Server) Health(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := s.Healthz(); err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	return nil
}

// Healthz asks the NATS server whether it stores messages. Streams that it did not
// find again are not its matter: provisioning creates them again, over their messages.
func (s *Server) Healthz() error {
	status := s.current().Healthz(&server.HealthzOptions{Details: true})
	for _, e := range status.Errors {
		lost := e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error")
		if lost || e.Type == server.HealthzErrorJetStream || e.Type == server.HealthzErrorConn {
			return WriteError(e.Error)
		}
	}
	return nil
}
