// Package budget bounds what expressions compute.
//
// Expressions can ask for more than a machine has: loops in loops, locals that double
// the one before, functions whose work is the square of their arguments. hcl evaluates
// without bounds. [Instrument] therefore replaces the nodes of an expression that compute
// by nodes that charge a [Budget] before hcl does the work, and [Budget.Eval] evaluates
// such an expression until nothing is left. Charges depend on values alone, never on the
// clock: an evaluation has the same outcome on every machine.
//
// Where cty's own way takes the square of the size, the nodes take a linear one first
// (convert.go, call.go); the prices of functions are in functions.go. All figures are
// measured: TestWorstExpressions of package flows looks for expressions that cost more
// than they are charged for.
package budget
