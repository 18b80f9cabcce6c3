// Package artifacts keeps blobs that are larger than a message, by the SHA-256 digest of
// their bytes, and performs the operations of guests on them.
//
// There are two stores: [Files] in a data directory, beside an embedded server, and
// [Objects], a bucket of objects on an external one, which several hosts may share. An
// artifact is in a store as a whole or not at all: what is being written has no digest yet.
// The same bytes are stored once; the content type is that of whoever stored them first, or
// the attempt's own.
//
// # Who may read
//
// An attempt reads what it has made itself, and the digests that its [Config] says it may
// know, those in its input and configuration. For any other digest the answer is the same
// whether the artifact exists or not.
//
// # Damage
//
// A session compares what it reads with the digest: the last part of a damaged artifact is
// ErrDamaged, and parts that are read in another order come after the whole was compared.
// Stores do not compare; whoever reads a [Store] or [Parts] directly does. Storing an artifact
// again replaces one that is damaged.
//
// # How long an artifact is kept
//
// As long as a run refers to it, and at least [Grace] longer: [Store.Sweep] asks for each
// artifact whether it is referenced. Whoever records a new reference to an old artifact
// calls [Store.Retain] first, so that no sweep comes between.
//
// # Memory
//
// Independent of the size of artifacts: an open handle has at most two parts of 256 KiB
// with Objects, and none with Files.
//
// To read it: store.go (what a store is), session.go with handle.go and operations.go (what
// guests may do), checked.go (comparing digests), files.go with quota.go, objects.go with
// objectwriter.go, objectreader.go and objectsweep.go, parts.go (reading in parts, beside
// attempts). The package starts no goroutines but those of timers of Parts, which
// [Parts.Close] stops.
package artifacts
