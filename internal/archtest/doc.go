// Package archtest keeps the architecture: which package may import which, and
// the habits that a compiler does not check. Its tests read all Go files of the
// module, of every operating system, without building them; each violation contains
// where it is and why the rule exists.
//
// [Layers] is the table of packages, [Owners] that of third-party modules. To
// change the architecture, change these tables and explain why in the same commit.
package archtest
