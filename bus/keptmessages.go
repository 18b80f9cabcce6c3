package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of what a publisher keeps of messages that are acknowledged.
const (
	keptTime  = time.Second
	keptBytes = 8 << 20
)

// keptMessages are acknowledged messages that the server may still lose: with
// async persistence it acknowledges what is only in its memory, and it can end
// alone, by a crash or because it must be started again after a disk was full.
// They are kept until the server has written them out.
type keptMessages struct {
	messages []keptMessage
	lost     []*nats.Msg // to be published again, before anything else
	bytes    int         // of messages
	since    time.Time   // of the first one

	written    uint64 // sequence of the last message of ours that was written out
	last       uint64 // of the last one that was acknowledged
	reconnects uint64 // of the connection when that was found to be so
}

type keptMessage struct {
	msg *nats.Msg
	seq uint64
}

func (k *keptMessages) add(msg *nats.Msg, seq uint64) {
	if len(k.messages) == 0 {
		k.since = time.Now()
	}
	k.messages = append(k.messages, keptMessage{msg, seq})
	k.bytes += len(msg.Data)
	k.last = max(k.last, seq)
}

// due reports whether what is kept should be written out.
func (k *keptMessages) due() bool {
	return len(k.messages) > 0 && (k.bytes >= keptBytes || time.Since(k.since) >= keptTime)
}

// timer fires when that is so.
func (k *keptMessages) timer() *time.Timer {
	if len(k.messages) == 0 {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return timer
	}
	return time.NewTimer(time.Until(k.since.Add(keptTime)))
}

// clear forgets messages that the server has written out.
func (k *keptMessages) clear() {
	if n := len(k.messages); n > 0 {
		k.written = k.messages[n-1].seq
	}
	clear(k.messages)
	k.messages, k.bytes = k.messages[:0], 0
}

// after takes out the messages above a sequence.
func (k *keptMessages) after(seq uint64) []*nats.Msg {
	var lost []*nats.Msg
	kept := k.messages[:0]
	k.last = k.written
	for _, m := range k.messages {
		if m.seq > seq {
			lost = append(lost, m.msg)
			k.bytes -= len(m.msg.Data)
		} else {
			kept = append(kept, m)
			k.last = m.seq
		}
	}
	k.messages = kept
	return lost
}

// LostMessagesError says that a server has lost messages that it had acknowledged
// and written to its disk. They are published again by the next start, which
// finds out where the stream ends.
type LostMessagesError struct {
	Stream    string
	Last      uint64 // the stream's last sequence
	Published uint64 // the one that it had written out
}

func (e *LostMessagesError) Error() string {
	return fmt.Sprintf("stream %s ends at %d and had %d: the server has lost messages, which the next start publishes again", e.Stream, e.Last, e.Published)
}

// release has the server write out what it has acknowledged, and forgets it. When
// another server has answered meanwhile, it is kept for the next time.
func (p *publisher) release(ctx context.Context) error {
	if err := p.writeOut(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.what, err)
	}
	if p.nc.Stats().Reconnects == p.kept.reconnects {
		p.kept.clear()
	}
	return nil
}

// restore publishes again what the server has lost since the connection was made
// anew.
func (p *publisher) restore(ctx context.Context) error {
	if err := p.findLost(ctx); err != nil {
		return err
	}
	for len(p.kept.lost) > 0 {
		stored, err := p.send(ctx, p.kept.lost)
		for i, seq := range stored {
			p.kept.add(p.kept.lost[i], seq)
		}
		p.kept.lost = p.kept.lost[len(stored):]
		if err != nil && (len(stored) == 0 || !outOfTurn(err)) {
			return err
		}
	}
	return nil
}

// findLost compares where the stream ends with what was acknowledged.
func (p *publisher) findLost(ctx context.Context) error {
	k := &p.kept
	now := p.nc.Stats().Reconnects
	if now == k.reconnects {
		return nil
	}
	if err := usable(p.nc); err != nil {
		return err
	}
	info, err := p.stream.Info(ctx)
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	if last < k.written {
		return &LostMessagesError{Stream: p.publisherConfig.stream, Last: last, Published: k.written}
	}
	if last < k.last {
		lost := k.after(last)
		p.log.Warn("the server has lost messages and gets them again", "stream", p.publisherConfig.stream, "messages", len(lost))
		k.lost = append(lost, k.lost...)
	}
	k.reconnects = now
	return nil
}
