// Package funcs has the functions that expressions may call.
//
// None of them reads a file, the clock or a source of randomness: a run evaluates to the
// same values wherever and whenever it is resumed. Most are those of the standard library
// of cty; own.go has those that no library has or that must differ, linear.go those whose
// standard version takes the square of the size, and sizes.go refuses arguments whose
// result would be too large.
package funcs
