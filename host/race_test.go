//go:build race

package host_test

// underRace: the detector reserves more memory than a child may have.
const underRace = true
