// Package ctyjson converts between JSON and cty values, for expressions that read and
// write the JSON of tasks.
//
// cty has a codec of its own. This one exists because it is some ten times as fast
// (8 µs where cty's takes 77), writes numbers in full and object keys sorted, finds a
// part of a value without decoding the rest, and is bounded: it refuses deep nesting
// and numbers whose conversion takes the square of their digits, and it charges a
// [Meter] before it works.
//
// [Decode] and [Encode] convert whole values; [Extract], [Enter] and [Each] read parts
// of JSON as it is. The package depends on nothing else of flows.
package ctyjson

// Meter pays for work. Charge takes the cost of work that is about to be done, in units
// of about a microsecond, and returns an error when it must not be done.
type Meter interface {
	Charge(cost int) error
}

// Unmetered pays for everything: it is for values that are known to be small.
type Unmetered struct{}

// Charge returns nil.
func (Unmetered) Charge(int) error { return nil }
