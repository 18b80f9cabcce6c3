package history

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flowhost/flowhost/run"
)

// page gives up to limit entries that match the query, newest first.
func (x *recordIndex) page(q run.Query, limit int) (found []run.Summary, err error) {
	err = x.view(func(tx *bbolt.Tx) error {
		var cursors []*laneCursor
		for _, state := range finalStates {
			if len(q.States) > 0 && !slices.Contains(q.States, state) {
				continue
			}
			cursors = append(cursors, newLaneCursor(tx, q, q.Flow, state))
			if q.Flow == laneTop && q.Children {
				cursors = append(cursors, newLaneCursor(tx, q, laneChildren, state))
			}
		}
		for len(found) < limit {
			newest := newestOf(cursors)
			if newest == nil {
				return nil
			}
			e, err := decodeEntry(newest.id, newest.state, newest.value)
			if err != nil {
				return err
			}
			if q.MatchesNominal(&e.Trigger) {
				found = append(found, e.Summary)
			}
			newest.previous()
		}
		return nil
	})
	return found, err
}

// laneCursor goes through a lane from the newest entry that is asked for to the
// oldest.
type laneCursor struct {
	cursor *bbolt.Cursor
	lane   []byte
	state  run.State
	least  run.ID // of those asked for

	id    run.ID // where the cursor is; empty at the end
	value []byte // valid until the transaction ends
}

func newLaneCursor(tx *bbolt.Tx, q run.Query, flow string, state run.State) *laneCursor {
	l := &laneCursor{cursor: tx.Bucket(bucketRuns).Cursor(), lane: lane(flow, state), state: state}
	if since := since(q); !since.IsZero() {
		l.least = run.MinID(since)
	}
	end := afterLane(l.lane)
	if before := before(q); before != "" {
		end = append(bytes.Clone(l.lane), before...)
	}
	if key, _ := l.cursor.Seek(end); key == nil {
		l.at(l.cursor.Last())
	} else {
		l.previous()
	}
	return l
}

// since is the time since which all runs of the answer were accepted. No schedule fires
// more than a day before its time.
func since(q run.Query) time.Time {
	if early := q.NominalSince.AddDate(0, 0, -1); !q.NominalSince.IsZero() && early.After(q.Since) {
		return early
	}
	return q.Since
}

// before is the id below which all runs of the answer are, empty without one.
func before(q run.Query) run.ID {
	if q.Until.IsZero() {
		return q.Before
	}
	until := run.MinID(q.Until)
	if q.Before != "" && q.Before < until {
		return q.Before
	}
	return until
}

func (l *laneCursor) previous() { l.at(l.cursor.Prev()) }

func (l *laneCursor) at(key, value []byte) {
	id, ok := bytes.CutPrefix(key, l.lane)
	l.id, l.value = run.ID(id), value
	if !ok || l.id < l.least {
		l.id = ""
	}
}

// newestOf gives the cursor at the largest id, nil when all are at their end.
func newestOf(cursors []*laneCursor) *laneCursor {
	var newest *laneCursor
	for _, c := range cursors {
		if c.id != "" && (newest == nil || c.id > newest.id) {
			newest = c
		}
	}
	return newest
}

// List gives finished runs, newest first, from the index alone. It waits while the
// index is not up to date, until ctx ends. A record that the stream has just dropped
// may still be in the list.
func (h *Store) List(ctx context.Context, q run.Query) (run.Page, error) {
	size := q.Size()
	for {
		index, err := h.opened(ctx)
		if err != nil {
			return run.Page{}, err
		}
		// First what is on its way to the index, then the index: what gets there in
		// between is in both.
		fresh := h.matching(q)
		indexed, err := index.page(q, size+1)
		if h.broken(index, err) {
			continue
		}
		if err != nil {
			return run.Page{}, err
		}
		page := run.Page{Runs: newestFirst(fresh, indexed)}
		if len(page.Runs) > size {
			page.Runs = page.Runs[:size]
			page.Next = page.Runs[size-1].Run
		}
		return page, nil
	}
}

// matching gives what is not in the index yet and matches the query.
func (h *Store) matching(q run.Query) []run.Summary {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []run.Summary
	for _, r := range h.fresh {
		if q.Matches(&r.entry.Summary) {
			found = append(found, r.entry.Summary)
		}
	}
	return found
}

// newestFirst puts two lists together and sorts them by id, each run once.
func newestFirst(fresh, indexed []run.Summary) []run.Summary {
	if len(fresh) == 0 {
		return indexed
	}
	all := append(fresh, indexed...)
	slices.SortFunc(all, func(a, b run.Summary) int { return cmp.Compare(b.Run, a.Run) })
	return slices.CompactFunc(all, func(a, b run.Summary) bool { return a.Run == b.Run })
}
