package run

import "time"

// Bounds of the memory for idempotency keys: a key is known for KeyAge after the
// run that it made was accepted, and not longer than MaxKeys later ones need
// its place.
const (
	KeyAge  = 24 * time.Hour
	MaxKeys = 1 << 18
)

// Keys are the idempotency keys of accepted requests, in the order in which they
// came. The zero value is empty.
type Keys struct {
	runs  map[keyOf]keyed
	order []key // the oldest first
}

type keyed struct {
	run ID
	at  time.Time
}

type keyOf struct{ flow, key string }

type key struct {
	keyOf
	at time.Time
}

// Run is the run that a request for the flow with the given key has made, if
// the key is still known at the given time.
func (k *Keys) Run(flow, name string, at time.Time) (ID, bool) {
	first, known := k.runs[keyOf{flow, name}]
	if !known || at.Sub(first.at) > KeyAge {
		return "", false
	}
	return first.run, true
}

// Len is the number of known keys.
func (k *Keys) Len() int { return len(k.order) }

func (k *Keys) add(flow, name string, id ID, at time.Time) {
	k.forget(at)
	of := keyOf{flow, name}
	if _, known := k.runs[of]; known {
		return // the first one counts
	}
	if k.runs == nil {
		k.runs = map[keyOf]keyed{}
	}
	if len(k.order) >= MaxKeys {
		k.drop(1)
	}
	k.runs[of] = keyed{id, at}
	k.order = append(k.order, key{of, at})
}

// forget drops what is too old at the given time.
func (k *Keys) forget(now time.Time) {
	n := 0
	for n < len(k.order) && now.Sub(k.order[n].at) > KeyAge {
		n++
	}
	k.drop(n)
}

func (k *Keys) drop(n int) {
	for _, old := range k.order[:n] {
		delete(k.runs, old.keyOf)
	}
	clear(k.order[:n])
	k.order = k.order[n:] // append moves the rest to a new array when this one is used up
}
