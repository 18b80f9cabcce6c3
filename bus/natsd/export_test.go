package natsd

import "fmt"

// DisableJetStream does what a NATS server does by itself when it may not write its
// files: it stops storing messages and goes on otherwise.
func (s *Server) DisableJetStream() error { return s.current().ShutdownJetStream() }

// LookAtConnections is what the server does with them while it looks for backlogs.
func (s *Server) LookAtConnections() { s.moved(); s.ownConnections() }

// MendStreams is what StartServer does with the files of streams.
var MendStreams = mendStreams

// CutBlock cuts what cannot be read out of the content of a first file of the stream
// FH_JOURNAL, and fails when something is left that cannot be read.
func CutBlock(text []byte) ([]byte, error) {
	b, err := newBlock(&mendedStreams[0], "1.blk")
	if err != nil {
		return nil, err
	}
	at := 0
	c := b.read(text)
	for _, p := range c.holes {
		if p.from < at || p.to <= p.from || p.to > len(text) {
			return nil, fmt.Errorf("part %v of %d bytes follows %d", p, len(text), at)
		}
		at = p.to
	}
	out := without(text, c.holes)
	if again := b.read(out); len(again.holes) > 0 {
		return nil, fmt.Errorf("parts %v are left", again.holes)
	}
	return out, nil
}
