// Package known keeps what checking modules has found, so that a start neither reads nor
// checks a module that an earlier one has checked: of each module its signature, by its
// digest, and whether it was compiled; of each file the digest that it had, by the
// identity that the system gives it.
//
// It is kept in a compile.Store, which detects damage, or in memory, for the process.
// What is not known costs time and nothing else.
package known
