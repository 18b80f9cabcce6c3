// Package creds reads files with the credentials of a NATS user: as nsc writes them, of
// a key's seed, or a context as the nats command line has it.
package creds
