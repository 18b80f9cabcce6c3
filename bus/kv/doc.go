// Package kv performs the operations kv.get, kv.put, kv.delete and kv.list of guests on
// key-value buckets of JetStream.
//
// The bucket that a guest calls counters is FH_KV_counters, a stream KV_FH_KV_counters, in
// the account of the connection. On the embedded server that is ENGINE, which no program
// but the host can enter: what is in a bucket got there by a grant. All flows to which a
// bucket is granted share it. The first put makes a bucket; reading does not.
//
// A revision is the number of the bucket's message. It grows with each change in the
// bucket, so that a key that was deleted and made again has another one. A put whose
// acknowledgement is lost fails as unreachable, and may have been performed: with a revision
// the next one shows it by a conflict.
//
// On a server with replicas a get may be answered by one that lags behind the last put; a
// put with a revision is decided by the leader.
//
// To read it: store.go (buckets), session.go (who may do what), operations.go, list.go,
// names.go, buckets.go (which buckets there are). The package starts no goroutines; a list has
// one of nats.go, which ends with it.
package kv
