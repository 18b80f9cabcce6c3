// Package secrets gives the values of secrets to the host, right before they are used: from
// environment variables, files, files that age has encrypted, and the KV engine (version 2)
// of Vault or OpenBao.
//
// A value stays in memory for a minute after it was read, a failure for five seconds. So a
// rotated value is in use within a minute, without a restart. Resolves of one secret at the
// same time share one lookup.
//
// No error, log record or fault contains a value, or anything that was read beside it.
// Faults may reach guests and name neither paths nor addresses; the log and [Store.Check]
// do.
//
// Each lookup runs in a goroutine of its Store, for ten seconds at most, and one timer of
// the Store removes old values; [Store.Close] cancels the lookups and waits for them. A read
// of a file cannot be canceled: a file system that does not answer delays Close.
package secrets
