// Package cli holds what all commands share: the streams of the program, the exit
// codes and the errors that carry them, the checks of arguments, the layout of help
// texts, and signals.
//
// Results go to [App.Out], everything else to [App.Errout]. An error ends the program
// with the exit code that it carries, or with the one for its kind: see [CodeOf].
//
// Goroutines: [ListenSignals] starts one and waits for it in the function it returns.
package cli
