package crashtest_test

import (
	"testing"

	"github.com/flowhost/flowhost/internal/crashtest"
)

func TestGrown(t *testing.T) {
	t.Parallel()
	bounds := []crashtest.Bound{{Name: "files", Of: func(u crashtest.Usage) int64 { return u.Files }, Factor: 1.5, Plus: 1}}
	tests := []struct {
		name  string
		files []int64
		grown bool
	}{
		{"steady", []int64{10, 10, 10, 10, 10, 10}, false},
		{"a peak", []int64{10, 10, 10, 90, 10, 10, 10, 90, 10}, false},
		{"up to the bound", []int64{10, 10, 12, 14, 16, 16}, false},
		{"over the bound", []int64{10, 10, 12, 14, 17, 17}, true},
		{"slowly but surely", []int64{10, 12, 14, 16, 18, 20, 22, 24, 26}, true},
		{"less", []int64{20, 20, 10, 10, 5, 5}, false},
		{"nothing to compare", []int64{1, 100}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var samples []crashtest.Usage
			for _, n := range test.files {
				samples = append(samples, crashtest.Usage{Files: n})
			}
			if got := crashtest.Grown(samples, bounds); (len(got) > 0) != test.grown {
				t.Errorf("grown: %q, want %t", got, test.grown)
			}
		})
	}
}
