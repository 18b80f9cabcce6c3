package crashtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Way is how a run is requested.
type Way string

// The ways.
const (
	Request Way = "request" // to fh.v1.api.run.<flow>
	Keyed   Way = "keyed"   // the same with an idempotency key, repeated until it is answered
	Trigger Way = "trigger" // a message to fh.v1.trigger.<flow>, repeated with its id until it is acknowledged
)

// Fate is what a client knows about its request.
type Fate string

// The fates.
const (
	Unknown  Fate = "unknown"  // no answer: there may be a run, or none
	Accepted Fate = "accepted" // there is exactly one run
	Refused  Fate = "refused"  // there is none
)

// Entry is one request.
type Entry struct {
	Marker string // identifies the entry; part of the payload
	Flow   string
	Way    Way
	N      int // input of the flow

	Sent     time.Time
	Fate     Fate
	Answered time.Time       // when the fate became known
	Run      string          // its id; empty when no answer contained it
	Record   json.RawMessage // of the finished run, if an answer contained it
	Canceled bool            // a cancellation was acknowledged
}

// Ledger contains the requests of clients and their answers. It is safe for
// concurrent use.
type Ledger struct {
	mu      sync.Mutex
	entries map[string]*Entry
	broken  []Finding // promises broken by an answer alone
}

// Send notes a request before it is sent.
func (l *Ledger) Send(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[string]*Entry{}
	}
	e.Sent, e.Fate = time.Now(), Unknown
	l.entries[e.Marker] = &e
}

// Accept notes an acknowledgement. run is empty when it does not name the run.
func (l *Ledger) Accept(marker, run string) {
	l.change(marker, func(e *Entry) {
		if e.Run != "" && run != "" && e.Run != run {
			l.broken = append(l.broken, Finding{Rule: RuleTwice, Marker: marker, Run: run, Answered: e.Answered,
				What: "the same key was answered with run " + e.Run + " before"})
			return
		}
		if e.Fate != Accepted {
			e.Fate, e.Answered = Accepted, time.Now()
		}
		if run != "" {
			e.Run = run
		}
	})
}

// Refuse notes that the request was refused.
func (l *Ledger) Refuse(marker string) {
	l.change(marker, func(e *Entry) { e.Fate, e.Answered = Refused, time.Now() })
}

// Finish notes the record of a finished run from an answer.
func (l *Ledger) Finish(marker, run string, record []byte) {
	l.Accept(marker, run)
	l.change(marker, func(e *Entry) { e.Record, e.Answered = record, time.Now() })
}

// Cancel notes that a cancellation was acknowledged.
func (l *Ledger) Cancel(marker string) {
	l.change(marker, func(e *Entry) { e.Canceled, e.Answered = true, time.Now() })
}

func (l *Ledger) change(marker string, f func(*Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.entries[marker])
}

// Entries are all entries, in the order of their markers.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Entry, 0, len(l.entries))
	for _, e := range slices.SortedFunc(maps.Values(l.entries), func(a, b *Entry) int { return strings.Compare(a.Marker, b.Marker) }) {
		all = append(all, *e)
	}
	return all
}

// Open returns the entries of the way whose fate is unknown and that were sent within
// the given time: they may be repeated.
func (l *Ledger) Open(way Way, within time.Duration) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []Entry
	for _, e := range l.entries {
		if e.Way == way && e.Fate == Unknown && time.Since(e.Sent) < within {
			open = append(open, *e)
		}
	}
	return open
}

// Count is the number of entries of each fate.
func (l *Ledger) Count() map[Fate]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := map[Fate]int{}
	for _, e := range l.entries {
		count[e.Fate]++
	}
	return count
}
