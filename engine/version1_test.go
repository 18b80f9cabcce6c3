package engine

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// version1 gives events as version 1 wrote them.
func version1(t *testing.T, events []run.Event) []byte {
	t.Helper()
	lines := []byte("{\"v\":1}\n")
	for _, e := range events {
		line, err := run.EncodeJSON(map[string]any{"k": e.Data.Kind(), "r": e.Run, "t": e.At.UnixNano(), "d": e.Data})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines
}

// A journal of version 1 continues in version 2, from any of its revisions, with
// snapshots, and with the large values that its commits hold themselves.
func TestJournalOfVersion1GoesOn(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	payload := text("x", largeSize)
	synctest.Test(t, func(t *testing.T) {
		m := newRemains(t)
		r := boot(t, Config{Journal: m.journal, Blobs: m.vault, Invoker: slowly(time.Second)}, set)
		r.submit("f", payload)
		r.submit("f", `"y"`)
		time.Sleep(time.Minute)
		r.stop()
		for n := range m.journal.last() {
			old := memory.NewJournal()
			for revision := range n + 1 {
				events := m.journal.at(revision + 1)
				for _, e := range events {
					e.Payloads(func(p *json.RawMessage) { *p = m.vault.whole(*p) })
				}
				if _, err := old.Append(t.Context(), revision, version1(t, events)); err != nil {
					t.Fatal(err)
				}
			}
			goesOn(t, set, old, n+1)
		}
	})
}

// goesOn opens an old journal, crashes when it is shortened, and opens it again.
func goesOn(t *testing.T, set *flows.Set, journal *memory.Journal, revision uint64) {
	t.Helper()
	accepted := fold(t, journal).Runs
	snapshots, blobs, told := memory.NewStore(), memory.NewStore(), finished{}
	config := Config{
		Journal: journal, Snapshots: snapshots, Blobs: blobs, SnapshotEvents: 1, Invoker: slowly(time.Hour), Timeout: 2 * time.Hour,
		Observers: []Observation{{Observer: told, CatchUp: true}},
	}
	r := boot(t, config, set)
	r.decide(40) // enough for some snapshots
	r.crash()
	if revision := journal.Removed(); revision == 0 {
		t.Fatalf("the journal is not shortened")
	}
	config.Invoker = nil
	r = boot(t, config, set)
	time.Sleep(time.Minute)
	r.Drain()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	r.kill()
	for id := range accepted {
		if record := told[id]; record == nil || record.State != run.Succeeded {
			t.Errorf("after revision %d of version 1: run %s: %+v", revision, id, record)
		}
	}
}
