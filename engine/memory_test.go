package engine

import (
	"testing"

	"github.com/flowhost/flowhost/internal/testkit/journaltest"
)

func TestMemoryJournalConforms(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t *testing.T) (journaltest.Journal, func() journaltest.Journal) {
		j := NewMemoryJournal()
		return j, func() journaltest.Journal { return j }
	})
}
