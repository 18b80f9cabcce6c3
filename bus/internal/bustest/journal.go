package bustest

import (
	"testing"

	"github.com/flowhost/flowhost/bus/journal"
)

func Commits(t *testing.T, j *journal.Journal) []string {
	t.Helper()
	var all []string
	if err := j.Replay(t.Context(), 0, func(_ uint64, c []byte) error { all = append(all, string(c)); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}
