// Package journal is the commit log of a shard of the engine, in stream FH_JOURNAL, and
// what is kept beside it.
//
// [Journal.Append] never reports success without an acknowledgement, and can be
// repeated; it waits for a server that is away, full or unable to write.
// [Journal.Replay] gives all commits or reports which are missing. An object of
// [Objects] exists as a whole or not at all. [Mark] stores how far others may know of a
// journal. [Progress] compares what was published of a journal with what it holds. A
// [Lease] keeps a second host from a journal on an external server.
//
// To read it: journal.go (append, compaction), replay.go with damage.go (gaps),
// objects.go (snapshots and blobs), mark.go with markfile.go, progress.go, lease.go. The
// package starts no goroutines: [Mark.Run] and [Lease.Run] block and end with their context.
package journal
