package jskit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of what a publisher keeps of messages that are acknowledged.
const (
	UnsyncedTime  = time.Second
	unsyncedBytes = 8 << 20
)

// unsynced are acknowledged messages that the server may still lose: with
// async persistence it acknowledges what is only in its memory, and it can end
// alone, by a crash or because it must be started again after a disk was full.
// They are kept until the server has written them out.
type unsynced struct {
	messages []unsyncedMessage
	lost     []*nats.Msg // to be published again, before anything else
	bytes    int         // of messages
	since    time.Time   // of the first one

	written    uint64 // sequence of the last message of ours that was written out
	last       uint64 // of the stream's last one, as far as known here
	reconnects uint64 // of the connection when it was found to be so
}

type unsyncedMessage struct {
	msg *nats.Msg
	seq uint64
}

func (k *unsynced) add(msg *nats.Msg, seq uint64) {
	if len(k.messages) == 0 {
		k.since = time.Now()
	}
	k.messages = append(k.messages, unsyncedMessage{msg, seq})
	k.bytes += len(msg.Data)
	k.last = max(k.last, seq)
}

// due reports whether what is kept should be written out.
func (k *unsynced) due() bool {
	return len(k.messages) > 0 && (k.bytes >= unsyncedBytes && time.Since(k.since) >= UnsyncedTime/10 || time.Since(k.since) >= UnsyncedTime)
}

// timer fires when that is so.
func (k *unsynced) timer() *time.Timer {
	if len(k.messages) == 0 {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return timer
	}
	return time.NewTimer(time.Until(k.since.Add(UnsyncedTime)))
}

// clear forgets messages that the server has written out.
func (k *unsynced) clear() {
	for _, m := range k.messages {
		k.written = max(k.written, m.seq)
	}
	clear(k.messages)
	k.messages, k.bytes = k.messages[:0], 0
}

// after takes out the messages above a sequence.
func (k *unsynced) after(seq uint64) []*nats.Msg {
	var lost []*nats.Msg
	kept := k.messages[:0]
	k.last = k.written
	for _, m := range k.messages {
		if m.seq > seq {
			lost = append(lost, m.msg)
			k.bytes -= len(m.msg.Data)
		} else {
			kept = append(kept, m)
			k.last = max(k.last, m.seq)
		}
	}
	k.messages = kept
	return lost
}

// LostMessagesError reports that a server has lost messages that it had acknowledged
// and written to its disk. They are published again by the next start, which
// finds out where the stream ends.
type LostMessagesError struct {
	Stream    string
	Last      uint64 // the stream's last sequence
	Published uint64 // the sequence that it had written out
}

func (e *LostMessagesError) Error() string {
	return fmt.Sprintf("stream %s ends at %d and had %d: the server has lost messages, which the next start publishes again", e.Stream, e.Last, e.Published)
}

// release has the server write out what it has acknowledged, and forgets it. When
// another server has answered meanwhile, it is kept for the next time.
func (p *Publisher) release(ctx context.Context) error {
	err := p.writeOut(ctx)
	switch {
	case errors.Is(err, ErrNoRoom):
		p.unsynced.since = time.Now() // it is kept, and asked for again later
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", p.cfg.What, err)
	}
	if p.nc.Stats().Reconnects == p.unsynced.reconnects {
		p.unsynced.clear()
	}
	return nil
}

// restore publishes again what the server has lost since the connection was restored.
func (p *Publisher) restore(ctx context.Context) error {
	if err := p.findLost(ctx); err != nil {
		return err
	}
	for len(p.unsynced.lost) > 0 {
		again := p.unsynced.lost
		p.unsynced.lost = nil
		stored, err := p.send(ctx, again)
		err = cmp.Or(p.keep(ctx, again, stored), err)
		p.unsynced.lost = append(p.unsynced.lost, again[len(stored):]...)
		if err != nil && (len(stored) == 0 || !outOfTurn(err)) {
			return err
		}
	}
	return nil
}

// keep takes messages that are acknowledged. A number that was given out before
// means that the server has lost the message that had it: it came back while these were sent.
func (p *Publisher) keep(ctx context.Context, msgs []*nats.Msg, stored []*jetstream.PubAck) error {
	for i, ack := range stored {
		// One that is stored already may have been so by an earlier process.
		if ack.Sequence <= p.unsynced.last && !ack.Duplicate {
			if _, err := p.compare(ctx, ack.Sequence-1); err != nil {
				return err
			}
		}
		p.unsynced.add(msgs[i], ack.Sequence)
	}
	return nil
}

// lostAfter puts what is kept above the sequence where the stream ended aside, to
// be published again.
func (p *Publisher) lostAfter(last uint64) error {
	k := &p.unsynced
	switch {
	case last >= k.last:
		return nil
	case last < k.written:
		return &LostMessagesError{Stream: p.cfg.Stream, Last: last, Published: k.written}
	}
	lost := k.after(last)
	if len(lost) == 0 {
		return nil
	}
	p.cfg.Log.Warn("the server has lost messages and gets them again", "stream", p.cfg.Stream, "messages", len(lost))
	k.lost = append(lost, k.lost...)
	return nil
}

// findLost compares where the stream ends with what was acknowledged, when there is
// a reason to.
func (p *Publisher) findLost(ctx context.Context) error {
	now := p.nc.Stats().Reconnects
	if now == p.unsynced.reconnects {
		return nil
	}
	if err := Usable(p.nc); err != nil {
		return err
	}
	last, err := p.compare(ctx, math.MaxUint64)
	if err != nil {
		return err
	}
	p.unsynced.reconnects = now
	p.unsynced.last = max(p.unsynced.last, last) // what follows others' messages
	return nil
}

// compare finds what the stream has lost of what was acknowledged, when it ended at
// the given sequence or before. It gives the one where it ends now.
func (p *Publisher) compare(ctx context.Context, ended uint64) (last uint64, err error) {
	info, err := p.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	last = info.State.LastSeq
	if !info.Created.Equal(p.created) {
		p.cfg.Log.Error("the stream is another one: what it held is gone", "stream", p.cfg.Stream)
		p.created = info.Created
		p.unsynced = unsynced{reconnects: p.unsynced.reconnects}
		return last, nil
	}
	whole, err := p.wholeUntil(ctx, min(ended, last))
	if err != nil {
		return 0, err
	}
	return last, p.lostAfter(whole)
}

// wholeUntil gives the sequence up to which the stream holds what is kept, at most
// the given one: a server that is killed while it writes may keep later records
// than the first one that it loses.
func (p *Publisher) wholeUntil(ctx context.Context, last uint64) (uint64, error) {
	for _, m := range p.unsynced.messages {
		if m.seq > last {
			break
		}
		_, err := p.stream.GetMsg(ctx, m.seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return m.seq - 1, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return last, nil
}
