// Package wire encodes the facts of package run for storage: a [Commit] contains the
// events that become durable together, a [Snapshot] the state of a shard.
//
// Both begin with a magic byte and a version, and end with a CRC-32C of everything
// before it. JSON is kept byte for byte; a payload of [run.BlobSize] or more is
// replaced by a reference to a [run.Blob], which the caller stores separately.
//
// The files: codec.go has the primitive values, events.go the events, commit.go and
// snapshot.go the two containers, schedules.go the schedules of a snapshot.
package wire
