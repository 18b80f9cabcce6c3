// Package archtest keeps the architecture: which package may import which, and
// the habits that a compiler does not check. Its tests read all Go files of the
// module, of every operating system, without building them; each violation contains
// where it is and why the rule exists.
//
// [Layers] is the table of packages, [Owners] that of third-party modules, [Writes]
// that of files that change the file system. To change the architecture, change these
// tables and give the reason in the same commit. [Phrases] is the table of wording
// that documentation, comments, help and errors avoid.
package archtest
