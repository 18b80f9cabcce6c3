package messages

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	knownFor    = 2 * time.Second // how long the answer of the server is remembered
	maxSubjects = 4096            // that are remembered
)

// streams knows which stream captures a subject.
type streams struct {
	js jetstream.JetStream

	mu    sync.Mutex
	known map[string]capture // by subject
}

// capture is the stream of a subject, "" for none that acknowledges.
type capture struct {
	stream string
	until  time.Time
}

// find gives the stream that captures a subject and acknowledges, "" for none.
func (s *streams) find(ctx context.Context, subject string) (string, error) {
	now := time.Now()
	s.mu.Lock()
	c, known := s.known[subject]
	s.mu.Unlock()
	if known && now.Before(c.until) {
		return c.stream, nil
	}
	name, err := s.ask(ctx, subject)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSubjects {
		clear(s.known)
	}
	s.known[subject] = capture{name, now.Add(knownFor)}
	return name, nil
}

func (s *streams) ask(ctx context.Context, subject string) (string, error) {
	name, err := s.js.StreamNameBySubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound),
		errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		return "", nil
	case err != nil:
		return "", err
	}
	stream, err := s.js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return "", nil
	case err != nil:
		return "", err
	case stream.CachedInfo().Config.NoAck:
		return "", nil
	}
	return name, nil
}

// forget has the next message on a subject ask the server.
func (s *streams) forget(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, subject)
}
