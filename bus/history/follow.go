package history

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// How often the index looks for what the stream has dropped: at each tick when it
// has dropped something, in the lanes that have grown, and in all when they are few.
const (
	sweepEvery = time.Minute // in all lanes however many
	fewLanes   = 64
)

// Bounds of reading the stream for the index.
const (
	rebuildBatch = 8 * indexBatch  // entries that are indexed together
	readPull     = 2 * time.Second // of one pull that brings nothing
	idleLooks    = 4               // of so many looks one is taken while nothing is published here
)

// errOtherStream reports that the index does not belong to what the stream holds now.
var errOtherStream = errors.New("the stream does not hold what was indexed")

// follower brings an index up to date and keeps it so. It is used on one goroutine.
type follower struct {
	*Store
	index   *recordIndex
	created time.Time // of the stream
	next    uint64    // sequence that is to be indexed next

	grown    map[laneName]bool // lanes with new entries since they were last swept
	gone     uint64            // messages that the stream had dropped by then
	sweptAt  time.Time         // when all lanes were swept
	goneThen uint64            // messages that the stream had dropped by then
}

func newFollower(h *Store, index *recordIndex) *follower {
	return &follower{Store: h, index: index, grown: map[laneName]bool{}}
}

// catchUp indexes what the stream has had for longer. While the server cannot be
// reached it waits, until ctx ends.
func (f *follower) catchUp(ctx context.Context) error {
	return f.insist(ctx, func() error {
		info, err := f.info(ctx)
		if err == nil {
			err = f.check(ctx, info)
		}
		if err != nil {
			return err
		}
		if missing := info.State.LastSeq + 1 - f.next; missing > rebuildBatch {
			f.log.Info("the history is being indexed", "messages", missing)
		}
		if err := f.read(ctx, info.State.LastSeq); err != nil {
			return err
		}
		return f.sweep(ctx, info)
	})
}

// insist repeats what fails for want of a server or a disk, until ctx ends.
func (f *follower) insist(ctx context.Context, try func() error) error {
	delay := jskit.Backoff{Log: f.log, What: "index the history"}
	for {
		err := f.publisher.Usable()
		if err == nil {
			err = try()
		}
		if err == nil || errors.Is(err, errIndexDamaged) || errors.Is(err, errOtherStream) {
			delay.Done()
			return err
		}
		if err := delay.Wait(ctx, err); err != nil {
			return err
		}
	}
}

func (f *follower) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	return f.publisher.Stream().Info(ctx)
}

// check finds out whether the index belongs to what the stream holds: a stream that
// was recreated, or that lost its end in a power failure, gives the same sequences
// to other records.
func (f *follower) check(ctx context.Context, info *jetstream.StreamInfo) error {
	place, err := f.index.place()
	if err != nil {
		return err
	}
	if place.created.IsZero() {
		if err := f.index.belongsTo(info.Created); err != nil {
			return err
		}
		place.created = info.Created
	}
	f.created, f.next = place.created, place.next
	f.reached(f.next)
	if !f.isOf(info) {
		return errOtherStream
	}
	if place.newest == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	newest, err := f.publisher.Stream().GetMsg(ctx, place.newest)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // dropped
	}
	if err != nil {
		return err
	}
	e, ok := parseEntry(newest.Sequence, newest.Subject, newest.Header)
	if !ok || e.Run != place.newestRun {
		return errOtherStream
	}
	indexed, err := f.index.find(e.Run)
	if err == nil && indexed.seq == e.seq && !indexed.endsAs(e.Summary) {
		return errOtherStream
	}
	return err
}

// isOf reports whether the index can be of this stream.
func (f *follower) isOf(info *jetstream.StreamInfo) bool {
	return f.created.Equal(info.Created) && f.next <= info.State.LastSeq+1
}

// keepUp indexes what this process and others publish, until ctx ends.
func (f *follower) keepUp(ctx context.Context) error {
	tick := time.NewTicker(indexEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		work := f.takeIn
		select {
		case <-f.many:
		case <-tick.C:
			if f.idle() && n%idleLooks != 0 {
				continue
			}
			work = f.look
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := f.insist(ctx, func() error { return work(ctx) }); err != nil {
			return err
		}
	}
}

// look takes in what is there, and then asks the stream for what others put there
// and for what is gone.
func (f *follower) look(ctx context.Context) error {
	if err := f.takeIn(ctx); err != nil {
		return err
	}
	info, err := f.info(ctx)
	if err != nil {
		return err
	}
	if !f.isOf(info) {
		return errOtherStream
	}
	// Between messages of this process a gap shows what others put there.
	if f.idle() {
		if err := f.read(ctx, info.State.LastSeq); err != nil {
			return err
		}
	}
	return f.sweep(ctx, info)
}

// takeIn indexes what this process has published, with what is in between.
func (f *follower) takeIn(ctx context.Context) error {
	if !f.inUse(f.index) {
		return errIndexDamaged // a reader has found out
	}
	gap, err := f.addStored()
	if err != nil || gap == 0 {
		return err
	}
	if err := f.read(ctx, gap); err != nil {
		return err
	}
	_, err = f.addStored() // is in the index now
	return err
}

// addStored indexes what this process has published. When the stream has something
// else in between it does nothing and returns the sequence up to which the stream
// must be read.
func (f *follower) addStored() (gap uint64, err error) {
	batch := f.storedNow()
	old := slices.IndexFunc(batch, func(r *freshRecord) bool { return r.entry.seq >= f.next })
	if old < 0 {
		old = len(batch)
	}
	f.indexed(batch[:old])
	batch = batch[old:]
	for i, r := range batch {
		if r.entry.seq != f.next+uint64(i) {
			last := slices.MaxFunc(batch, func(a, b *freshRecord) int { return int(a.entry.seq) - int(b.entry.seq) })
			return last.entry.seq, nil
		}
	}
	for chunk := range slices.Chunk(batch, indexBatch) {
		entries := make([]indexEntry, len(chunk))
		for i, r := range chunk {
			entries[i] = r.entry
		}
		if err := f.add(entries, f.next+uint64(len(entries))); err != nil {
			return 0, err
		}
		f.indexed(chunk)
	}
	return 0, nil
}

func (f *follower) add(entries []indexEntry, next uint64) error {
	if err := f.index.add(entries, next); err != nil {
		return err
	}
	f.next = next
	f.reached(next)
	for _, e := range entries {
		f.grown[laneName{e.Flow, e.State}] = true
	}
	return nil
}

// read indexes what the stream holds up to a sequence, from the headers alone.
func (f *follower) read(ctx context.Context, upTo uint64) error {
	r := f.publisher.Reader(bus.HistorySubjects, f.next)
	r.Headers, r.Pull = true, readPull
	defer r.Close(ctx)
	var entries []indexEntry
	loaded := 0 // of these, up to where the artifacts are known
	for r.Next <= upTo {
		first, err := f.firstFrom(ctx, r.Next, bus.HistorySubjects)
		if err != nil {
			return err
		}
		if first == 0 || first > upTo {
			r.Next = upTo + 1
			break
		}
		err = r.Fetch(ctx, func(m jetstream.Msg, at jskit.Place) error {
			if e, ok := parseEntry(at.Seq, m.Subject(), m.Headers()); ok {
				entries = append(entries, e)
			}
			if at.Seq >= upTo || !at.More && jskit.Exhausted(m) {
				return jskit.ErrEnough
			}
			return nil
		})
		if err == nil {
			err = f.loadArtifacts(ctx, entries[loaded:])
			loaded = len(entries)
		}
		if err != nil {
			return err
		}
		if len(entries) >= rebuildBatch {
			if err := f.add(entries, r.Next); err != nil {
				return err
			}
			entries, loaded = nil, 0
		}
	}
	if r.Next == f.next {
		return nil
	}
	return f.add(entries, r.Next)
}

// firstFrom gives the sequence of the first message at or after a place, 0 when
// there is none.
func (f *follower) firstFrom(ctx context.Context, seq uint64, subject string) (uint64, error) {
	msg, err := f.MessageFrom(ctx, seq, subject)
	if msg == nil || err != nil {
		return 0, err
	}
	return msg.Sequence, nil
}

// sweep removes from the index what the stream has dropped: the oldest messages of
// a subject, whether for their age, their number or the stream's size.
func (f *follower) sweep(ctx context.Context, info *jetstream.StreamInfo) error {
	gone := info.State.LastSeq - info.State.Msgs
	all := gone != f.goneThen && time.Since(f.sweptAt) >= sweepEvery
	if gone == f.gone && !all {
		clear(f.grown) // and nothing of them is gone
		return nil
	}
	lanes, err := f.index.lanes()
	if err != nil {
		return err
	}
	if all = all || len(lanes) <= fewLanes; all {
		f.sweptAt, f.goneThen = time.Now(), gone
	} else {
		lanes = slices.Collect(maps.Keys(f.grown))
	}
	for _, l := range lanes {
		if err := f.sweepLane(ctx, l); err != nil {
			f.goneThen = 0
			return err
		}
	}
	f.gone = gone
	clear(f.grown)
	return nil
}

func (f *follower) sweepLane(ctx context.Context, l laneName) error {
	first, err := f.firstFrom(ctx, 1, bus.HistorySubject(l.flow, l.state))
	if err != nil {
		return err
	}
	if first == 0 {
		first = f.next
	}
	for {
		n, err := f.index.drop(l, first, indexBatch)
		if err != nil || n < indexBatch {
			return err
		}
	}
}
