// Package reachspec holds the words with which flow files and the settings of a host state what
// calls may reach: the tables of connection, secret, grant and allow blocks, and the forms of
// the texts in them, which are rules of HTTP requests, addresses, subjects of NATS, and names
// of buckets, variables and recipients.
//
// The blocks are decoded in package flows, which evaluates their expressions.
package reachspec
