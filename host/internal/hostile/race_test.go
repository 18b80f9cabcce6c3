//go:build race

package hostile

// The race detector makes a process slower and keeps more for each byte. What it
// slows down is the host; guests are native code.
const (
	timeFactor   = 4
	memoryFactor = 4
)
