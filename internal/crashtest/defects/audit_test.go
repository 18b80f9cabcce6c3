//go:build defects

package defects_test

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/run"
)

// read reads the journal as the engine does at its start.
func (r *rig) read(ctx context.Context) *reading {
	got := &reading{commits: map[uint64]uint32{}, last: r.ledger.floor}
	got.err = func() error {
		// A host makes what is not there: a stream that the server has forgotten is an
		// empty one then.
		if err := r.provision(ctx); err != nil {
			return err
		}
		j, err := journal.New(ctx, r.nc, 0, journal.Config{})
		if err != nil {
			return err
		}
		if err := j.Replay(ctx, r.ledger.floor, got.check); err != nil {
			return err
		}
		mark, err := journal.NewMark(r.nc, 0, journal.MarkConfig{})
		if err != nil {
			return err
		}
		if got.mark, err = mark.Last(ctx); err == nil && got.mark > got.last {
			err = &lostEndError{got.last, got.mark}
		}
		return err
	}()
	return got
}

// damages reports whether an error reports that something is lost, and is no error
// of a server that is away.
func damages(err error) bool {
	var (
		damage *journal.DamageError
		chain  *chainError
		end    *lostEndError
	)
	return errors.As(err, &damage) || errors.As(err, &chain) || errors.As(err, &end) ||
		errors.Is(err, run.ErrDamaged)
}

// audit reads the journal with each of its replicas as the leader, and judges the
// worst reading. last is where the next host continues; ok is false when the cluster
// cannot be used any more.
func (r *rig) audit() (last uint64, ok bool) {
	r.Helper()
	ok = true
	for _, peer := range r.peers(bus.StreamJournal) {
		led := r.lead(bus.StreamJournal, peer)
		r.lead(bus.StreamMarks, peer)
		if led == peer {
			r.counts.led++
		}
		got := r.reading()
		v, lost := r.ledger.judge(got)
		r.counts.verdicts[v]++
		switch v {
		case reported:
			r.counts.lostCommits += lost
		case silent:
			r.counts.silentCommits += lost
			r.Errorf("SILENT LOSS of %d commits: leader %s (asked for %s), acknowledged up to %d, read %d up to %d, mark %d", lost, led, peer, r.ledger.last(), len(got.commits), got.last, got.mark)
			r.logServers()
		}
		if v != intact {
			r.Logf("leader %s: %v: %v (lost %d, acknowledged up to %d, read up to %d, mark %d)", led, v, got.err, lost, r.ledger.last(), got.last, got.mark)
			ok = false
			continue
		}
		last = got.last
		if got.last > r.ledger.last() { // what was under way when the host died
			r.ledger.acked = append(r.ledger.acked, commit{got.last, got.lastSum})
		}
	}
	return last, r.auditTriggers() && ok
}

// reading reads until something can be read.
func (r *rig) reading() *reading {
	ctx, cancel := context.WithTimeout(r.Context(), settling)
	defer cancel()
	for {
		got := r.read(ctx)
		if got.err == nil || damages(got.err) || ctx.Err() != nil {
			return got
		}
		wait(ctx, time.Second)
	}
}

// logServers logs the output of the servers.
func (r *rig) logServers() {
	for _, n := range r.cluster.Nodes {
		r.Logf("%s said:\n%s", n.Name, tail(n.Process().Output(), 4000))
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// auditTriggers looks for messages of FH_TRIGGERS that were acknowledged.
func (r *rig) auditTriggers() bool {
	ctx, cancel := context.WithTimeout(r.Context(), settling)
	defer cancel()
	got, state, err := r.readTriggers(ctx)
	if err != nil {
		r.Logf("triggers cannot be read: %v", err)
		return false
	}
	lost, visible := 0, 0
	for id, seq := range r.ledger.triggers {
		if got.ids[id] {
			continue
		}
		lost++
		if seq <= state.LastSeq && !got.sequences[seq] { // the intake logs each that is missing
			visible++
		}
	}
	if lost > 0 {
		r.counts.lostTriggers += lost
		r.counts.visibleTriggers += visible
		r.Logf("%d of %d triggers are lost, %d of them are a gap; the stream holds %d to %d", lost, len(r.ledger.triggers), visible, state.FirstSeq, state.LastSeq)
	}
	return lost == 0
}

// triggers are what can be read of FH_TRIGGERS.
type triggers struct {
	ids       map[string]bool
	sequences map[uint64]bool
}

func (r *rig) readTriggers(ctx context.Context) (*triggers, *jetstream.StreamState, error) {
	js, err := jetstream.New(r.nc)
	if err != nil {
		return nil, nil, err
	}
	stream, err := js.Stream(ctx, bus.StreamTriggers)
	if err != nil {
		return nil, nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, nil, err
	}
	got := &triggers{map[string]bool{}, map[uint64]bool{}}
	c, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, nil, err
	}
	see := func(seq uint64, h nats.Header, data []byte) {
		id := h.Get(jetstream.MsgIDHeader)
		got.ids[id], got.sequences[seq] = got.ids[id] || string(data) == id, true
	}
	at := uint64(0)
	for quiet := 0; at < info.State.LastSeq && quiet < 3; quiet++ {
		batch, err := c.Fetch(1000, jetstream.FetchMaxWait(3*time.Second))
		if err != nil {
			return nil, nil, err
		}
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return nil, nil, err
			}
			at, quiet = meta.Sequence.Stream, -1
			see(at, m.Headers(), m.Data())
		}
	}
	for at++; at <= info.State.LastSeq; at++ { // a server that cannot read one delivers none behind it
		m, err := stream.GetMsg(ctx, at)
		if err == nil {
			see(at, m.Header, m.Data)
		} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, nil, err
		}
	}
	return got, &info.State, nil
}
