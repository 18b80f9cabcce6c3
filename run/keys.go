package run

import (
	"iter"
	"time"
)

// Limits of the memory for idempotency keys: a key is known for KeyAge after its run
// was accepted, or until MaxKeys later keys have replaced it.
const (
	KeyAge  = 24 * time.Hour
	MaxKeys = 1 << 18
)

// Key is the idempotency key of an accepted request.
type Key struct {
	Flow string
	Name string
	At   time.Time // when the run was accepted
	Run  ID
}

// Keys are the idempotency keys of accepted requests, in the order of their arrival.
// The zero value is empty.
type Keys struct {
	runs  map[keyName]keyRun
	order []keyTime // the oldest first
}

type keyName struct{ flow, name string }

type keyRun struct {
	run ID
	at  time.Time
}

type keyTime struct {
	keyName
	at time.Time
}

// Run is the run that the first request for the flow with the given key has made, if
// the key is still known at the given time.
func (k *Keys) Run(flow, name string, at time.Time) (ID, bool) {
	first, known := k.runs[keyName{flow, name}]
	if !known || at.Sub(first.at) > KeyAge {
		return "", false
	}
	return first.run, true
}

// Len is the number of known keys.
func (k *Keys) Len() int { return len(k.order) }

// All iterates over the known keys, the oldest first.
func (k *Keys) All() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for _, o := range k.order {
			if !yield(Key{Flow: o.flow, Name: o.name, At: o.at, Run: k.runs[o.keyName].run}) {
				return
			}
		}
	}
}

// Add adds a key, unless it is known, and removes those that are too old by then.
func (k *Keys) Add(added Key) {
	k.forget(added.At)
	name := keyName{added.Flow, added.Name}
	if _, known := k.runs[name]; known {
		return // the first one counts
	}
	if k.runs == nil {
		k.runs = map[keyName]keyRun{}
	}
	if len(k.order) >= MaxKeys {
		k.drop(1)
	}
	k.runs[name] = keyRun{added.Run, added.At}
	k.order = append(k.order, keyTime{name, added.At})
}

// forget removes the keys that are too old at the given time.
func (k *Keys) forget(now time.Time) {
	n := 0
	for n < len(k.order) && now.Sub(k.order[n].at) > KeyAge {
		n++
	}
	k.drop(n)
}

func (k *Keys) drop(n int) {
	for _, old := range k.order[:n] {
		delete(k.runs, old.keyName)
	}
	clear(k.order[:n])
	k.order = k.order[n:] // append moves the rest to a new array when this one is used up
}
