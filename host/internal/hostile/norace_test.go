//go:build !race

package hostile

const (
	timeFactor   = 1
	memoryFactor = 1
)
