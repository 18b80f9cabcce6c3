//go:build defects

package defects_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// flip flips one bit in up to n files that match any of the patterns, each at a
// random place, often near its end. It gives the files that it changed, as they were.
func flip(r *rand.Rand, n int, patterns ...string) (map[string][]byte, error) {
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	changed := map[string][]byte{}
	for _, file := range files {
		if len(changed) == n {
			break
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return changed, err
		}
		if len(text) == 0 {
			continue
		}
		changed[file] = slices.Clone(text)
		from := 0
		if r.IntN(3) == 0 {
			from = max(0, len(text)-1000)
		}
		text[from+r.IntN(len(text)-from)] ^= 1 << r.IntN(8)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return changed, err
		}
	}
	return changed, nil
}
