// Package mask replaces the values of secrets by *** in text that leaves the host: logs,
// outputs, errors, events.
//
// It is a net and not the control: who holds a value can always write it in a form that
// nobody expects. What protects a secret is that guests never get it.
//
// A value is found in these forms: as it is, in base64 at each of the three alignments (both
// alphabets, with and without padding), in hexadecimal digits, escaped for a URL and escaped
// for a JSON string. Of a value of several lines each line is found, too, and of the name of a
// database, or another URL, its password. Values shorter than [MinLength] are not masked: they
// would be found in innocent text.
//
// The work is linear in the text, whatever the number of values, and without values there is
// none. The package starts no goroutines.
package mask
