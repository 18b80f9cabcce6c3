package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
)

// DamageError reports that commits of a journal are lost: a file of it is damaged,
// or somebody removed messages of stream FH_JOURNAL.
type DamageError struct {
	First, Last uint64 // the first gap: the revisions that cannot be read
	Before      uint64 // the last revision before it that can be read, 0 when there is none
	After       uint64 // the first revision after it that can be read, 0 when there is none
}

func (e *DamageError) Error() string {
	what := fmt.Sprintf("revision %d is missing", e.First)
	if e.Last > e.First {
		what = fmt.Sprintf("revisions %d to %d are missing", e.First, e.Last)
	}
	readable := "none can be read"
	switch {
	case e.Before > 0 && e.After > 0:
		readable = fmt.Sprintf("those up to %d and from %d on can be read", e.Before, e.After)
	case e.Before > 0:
		readable = fmt.Sprintf("those up to %d can be read, and none after them", e.Before)
	case e.After > 0:
		readable = fmt.Sprintf("those from %d on can be read", e.After)
	}
	return fmt.Sprintf("the journal is damaged: %s, %s. Keep a copy of the data directory and put a backup in its place; without one, start with an empty data directory: runs that were not finished are lost then", what, readable)
}

// extent is what a stream reports about the commits that it holds.
type extent struct {
	first, end uint64   // of the stream's sequences; end is 0 when it never held any
	last       uint64   // of the shard's revisions, 0 when it has none
	alone      bool     // no other shard has commits in the stream: the numbers are all of this one
	floor      uint64   // below it, one of several shards may have removed commits
	deleted    []uint64 // sequences between first and last that hold nothing, sorted
}

// extent asks for it.
func (j *Journal) extent(ctx context.Context) (extent, error) {
	info, err := j.stream.Info(ctx, jetstream.WithDeletedDetails(true), jetstream.WithSubjectFilter(bus.PrefixJournal+"*"))
	if err != nil {
		return extent{}, err
	}
	s := info.State
	e := extent{first: s.FirstSeq, end: s.LastSeq, last: s.LastSeq, deleted: s.Deleted}
	if s.Lost != nil {
		e.deleted = append(e.deleted, s.Lost.Msgs...)
		slices.Sort(e.deleted)
	}
	if delete(s.Subjects, j.subject); len(s.Subjects) == 0 {
		e.alone = true
		return e, nil
	}
	if e.last, err = j.last(ctx); err != nil {
		return extent{}, err
	}
	for _, subject := range append(slices.Collect(maps.Keys(s.Subjects)), j.subject) {
		oldest, err := j.stream.GetMsg(ctx, max(s.FirstSeq, 1), jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // this shard's, which has none
		}
		if err != nil {
			return extent{}, err
		}
		e.floor = max(e.floor, oldest.Sequence)
	}
	return e, nil
}

// lost gives the first gap among the revisions from one to another that were not
// delivered. In a stream with several shards these may be commits of the others,
// and what is missing below the floor may have been.
func (e extent) lost(from, to uint64) (first, last uint64, lost bool) {
	if from > to {
		return 0, 0, false
	}
	if e.alone {
		return from, to, true
	}
	i, _ := slices.BinarySearch(e.deleted, max(from, e.floor))
	if i == len(e.deleted) || e.deleted[i] > to {
		return 0, 0, false
	}
	first, last = e.deleted[i], e.deleted[i]
	for _, seq := range e.deleted[i+1:] {
		if seq > last+1 || seq > to {
			break
		}
		last = seq
	}
	return first, last, true
}
