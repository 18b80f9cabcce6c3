// Package varint encodes numbers, strings and times for what bus stores and hands out:
// entries of the index and cursors. A reader never fails in between; it reports at the
// end whether anything was missing.
package varint
