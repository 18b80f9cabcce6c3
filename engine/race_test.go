//go:build race

package engine

// raceEnabled: the detector makes everything several times slower.
const raceEnabled = true
