package memory

import (
	"testing"

	"github.com/flowhost/flowhost/internal/testkit/journaltest"
)

func TestJournalConforms(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t *testing.T) (journaltest.Journal, func() journaltest.Journal) {
		j := NewJournal()
		return j, func() journaltest.Journal { return j }
	})
}
