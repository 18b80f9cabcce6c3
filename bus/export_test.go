package bus

import (
	"fmt"
	"time"
)

// DisableJetStream does what a NATS server does by itself when it may not write its
// files: it stops storing messages and goes on otherwise.
func (s *Server) DisableJetStream() error { return s.current().ShutdownJetStream() }

// MendJournal is what StartServer does with the journal's files, in relaxed mode when
// slack is RelaxedSlack.
var MendJournal = mendJournal

// RelaxedSlack is the slack of MendJournal in relaxed mode.
const RelaxedSlack time.Duration = relaxedSlack

// CutBlock cuts what cannot be read out of the content of a journal's first file, and
// fails when something is left that cannot be read and has records behind it.
func CutBlock(text []byte) ([]byte, error) {
	b, err := newBlock("1.blk")
	if err != nil {
		return nil, err
	}
	at := 0
	parts := b.damage(text, 0)
	for _, p := range parts {
		if p.from < at || p.to <= p.from || p.to > len(text) {
			return nil, fmt.Errorf("part %v of %d bytes follows %d", p, len(text), at)
		}
		at = p.to
	}
	out := without(text, parts)
	if again := b.damage(out, 0); len(again) > 0 {
		return nil, fmt.Errorf("parts %v are left", again)
	}
	return out, nil
}
