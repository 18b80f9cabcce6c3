package natsd_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

// commitSize is about the size of a commit in a damaged journal.
const commitSize = 4 << 10

// filledJournal is a data folder that no server uses, with 7 commits in each file of
// its journal. After a kill the server reads the files themselves, and its own index
// otherwise.
func filledJournal(t testing.TB, commits int, killed bool) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir})
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 120 << 10}); err != nil { // and so small files
		t.Fatal(err)
	}
	j := bustest.OpenJournal(t, nc, journal.Config{})
	last := uint64(0)
	for i := range commits {
		if last, err = j.Append(t.Context(), last, bigCommit(i)); err != nil {
			t.Fatal(err)
		}
	}
	bustest.StopServer(t, s)
	files, err = filepath.Glob(filepath.Join(dir, "jetstream", "ENGINE", "streams", bus.StreamJournal, "msgs", "*.blk"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files of the journal: %v, %v, want 3", files, err)
	}
	if killed {
		if err := os.Remove(filepath.Join(filepath.Dir(files[0]), "index.db")); err != nil {
			t.Fatal(err)
		}
	}
	return dir, files
}

func bigCommit(i int) []byte {
	return append(fmt.Appendf(nil, "commit %d ", i), bytes.Repeat([]byte{byte('a' + i%26)}, commitSize)...)
}

// flip changes one byte of a file, from its end when at is negative.
func flip(file string, at int64) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if at < 0 {
		at += int64(len(text))
	}
	text[at] ^= 0x55
	return os.WriteFile(file, text, 0o600)
}

func TestReplayFindsDamage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		killed bool
		hurt   func(files []string) error
		want   *journal.DamageError
		kept   int // copies of damaged files
	}{
		{"none", false, func([]string) error { return nil }, nil, 0},
		{"none, killed", true, func([]string) error { return nil }, nil, 0},
		{"a byte in the first file", false, func(f []string) error { return flip(f[0], 5*commitSize/2) }, &journal.DamageError{First: 3, Last: 3, Before: 2, After: 4}, 1},
		{"a byte in the first file, killed", true, func(f []string) error { return flip(f[0], 5*commitSize/2) }, &journal.DamageError{First: 3, Last: 3, Before: 2, After: 4}, 1},
		{"a byte in the last file", false, func(f []string) error { return flip(f[2], commitSize/2) }, &journal.DamageError{First: 15, Last: 15, Before: 14, After: 16}, 1},
		{"a byte in the last file, killed", true, func(f []string) error { return flip(f[2], commitSize/2) }, &journal.DamageError{First: 15, Last: 15, Before: 14, After: 16}, 1},
		{"two files", true, func(f []string) error { return errors.Join(flip(f[0], 5*commitSize/2), flip(f[2], commitSize/2)) }, &journal.DamageError{First: 3, Last: 3, Before: 2, After: 4}, 2},
		{"the last commit", false, func(f []string) error { return flip(f[2], -1000) }, &journal.DamageError{First: 20, Last: 20, Before: 19}, 1},
		{"first file cut", false, func(f []string) error { return os.Truncate(f[0], 5*commitSize/2) }, &journal.DamageError{First: 3, Last: 7, Before: 2, After: 8}, 1},
		{"first file cut, killed", true, func(f []string) error { return os.Truncate(f[0], 5*commitSize/2) }, &journal.DamageError{First: 3, Last: 7, Before: 2, After: 8}, 1},
		{"last file cut", false, func(f []string) error { return os.Truncate(f[2], 3*commitSize/2) }, &journal.DamageError{First: 16, Last: 20, Before: 15}, 0},
		{"second file gone", false, func(f []string) error { return os.Remove(f[1]) }, &journal.DamageError{First: 8, Last: 14, Before: 7, After: 15}, 0},
		{"second file gone, killed", true, func(f []string) error { return os.Remove(f[1]) }, &journal.DamageError{First: 8, Last: 14, Before: 7, After: 15}, 0},
		{"last file gone", false, func(f []string) error { return os.Remove(f[2]) }, &journal.DamageError{First: 15, Last: 20, Before: 14}, 0},
		{"all files gone", false, func(f []string) error {
			return errors.Join(os.Remove(f[0]), os.Remove(f[1]), os.Remove(f[2]))
		}, &journal.DamageError{First: 1, Last: 20}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, files := filledJournal(t, 20, tt.killed)
			if err := tt.hurt(files); err != nil {
				t.Fatal(err)
			}
			var log bustest.LogLines
			s := bustest.StartServer(t, natsd.Config{Dir: dir, Log: log.Logger()})
			j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{})
			wantDamage(t, j, 20, tt.want)
			kept, err := filepath.Glob(filepath.Join(dir, "damaged", "*"))
			if err != nil || len(kept) != tt.kept || log.Count("what can be read of it is kept") != tt.kept {
				t.Errorf("copies of damaged files: %v, %v, want %d", kept, err, tt.kept)
			}
		})
	}
}

// wantDamage replays a journal of big commits. What lies before the damage, and what
// lies behind it, can be read.
func wantDamage(t *testing.T, j *journal.Journal, commits uint64, want *journal.DamageError) {
	t.Helper()
	last := commits
	if want != nil {
		last = want.Before
	}
	got, err := readBig(t, j, 0)
	var damage *journal.DamageError
	errors.As(err, &damage)
	if diff := cmp.Diff(want, damage); diff != "" || (err == nil) != (want == nil) {
		t.Errorf("Replay = %v (-want +got):\n%s", err, diff)
	}
	if got != last {
		t.Errorf("Replay ended at revision %d, want %d", got, last)
	}
	if want == nil || want.After == 0 {
		return
	}
	if got, _ := readBig(t, j, want.Last); got < want.After {
		t.Errorf("Replay after the gap ended at revision %d, want %d at least", got, want.After)
	}
}

func readBig(t *testing.T, j *journal.Journal, after uint64) (last uint64, err error) {
	t.Helper()
	last = after
	err = j.Replay(t.Context(), after, func(revision uint64, commit []byte) error {
		if revision != last+1 || !bytes.Equal(commit, bigCommit(int(revision-1))) {
			t.Errorf("revision %d follows %d, or has another commit", revision, last)
		}
		last = revision
		return nil
	})
	return last, err
}

// In relaxed mode a power loss may leave the newest commits without some before
// them: then the server goes back to where all are there.
func TestMendLeavesWhatRelaxedModeMayLose(t *testing.T) {
	t.Parallel()
	dir, files := filledJournal(t, 20, true)
	if err := flip(files[2], commitSize/2); err != nil {
		t.Fatal(err)
	}
	hurt, err := os.ReadFile(files[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, relaxed := range []bool{true, false} {
		if err := natsd.MendStreams(dir, relaxed, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(files[2])
		if err != nil || bytes.Equal(now, hurt) != relaxed {
			t.Errorf("relaxed %t: the file is unchanged: %t, %v", relaxed, bytes.Equal(now, hurt), err)
		}
	}
}

// What compaction leaves is no damage, also for a server that was killed and reads the
// files themselves.
func TestReplayAfterCompactionAndKill(t *testing.T) {
	t.Parallel()
	for _, upTo := range []uint64{1, 6, 7, 8, 14, 18, 20} {
		t.Run(fmt.Sprint(upTo), func(t *testing.T) {
			t.Parallel()
			dir, files := filledJournal(t, 20, false)
			s := bustest.StartServer(t, natsd.Config{Dir: dir})
			j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{})
			if err := j.Compact(t.Context(), upTo); err != nil {
				t.Fatal(err)
			}
			bustest.StopServer(t, s)
			if err := os.Remove(filepath.Join(filepath.Dir(files[0]), "index.db")); err != nil {
				t.Fatal(err)
			}
			j = bustest.OpenJournal(t, bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{Dir: dir})), journal.Config{})
			first := min(upTo+1, 20)
			if last, err := readBig(t, j, first-1); err != nil || last != 20 {
				t.Errorf("Replay after %d ends at %d, %v", first-1, last, err)
			}
			if got, err := countCommits(t, j); err != nil || got != int(21-first) {
				t.Errorf("%d commits, %v, want %d", got, err, 21-first)
			}
			if _, err := j.Append(t.Context(), 20, bigCommit(20)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReplayBeyondTheEnd(t *testing.T) {
	t.Parallel()
	j := bustest.OpenJournal(t, bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{})), journal.Config{})
	last := uint64(0)
	for i := range 3 {
		var err error
		if last, err = j.Append(t.Context(), last, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(uint64, []byte) error { t.Error("a commit was given"); return nil }
	if err := j.Replay(t.Context(), last, nothing); err != nil {
		t.Error(err)
	}
	var damage *journal.DamageError
	if err := j.Replay(t.Context(), last+5, nothing); !errors.As(err, &damage) || *damage != (journal.DamageError{First: 4, Last: 8, Before: 3}) {
		t.Errorf("Replay after a revision that the journal does not reach = %v", err)
	}
}

// What another shard compacted away is no damage of this one.
func TestReplayBesideOtherShards(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	shards := []*journal.Journal{shardJournal(t, nc, 0), shardJournal(t, nc, 1)}
	var last [2]uint64
	for i := range 20 {
		var err error
		if last[i%2], err = shards[i%2].Append(t.Context(), last[i%2], []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := shards[1].Compact(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	for shard, want := range []int{10, 4} {
		if got, err := countCommits(t, shards[shard]); err != nil || got != want {
			t.Errorf("shard %d: %d commits, %v, want %d", shard, got, err, want)
		}
	}
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamJournal)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{17, 19} { // of shard 0, the last one among them
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	got, err := countCommits(t, shards[0])
	var damage *journal.DamageError
	if !errors.As(err, &damage) || damage.First != 17 || damage.Last != 17 || got != 8 {
		t.Errorf("Replay = %d commits, %v, want 8 and revision 17 missing", got, err)
	}
}

func shardJournal(t *testing.T, nc *nats.Conn, shard int) *journal.Journal {
	t.Helper()
	j, err := journal.New(t.Context(), nc, shard, journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func countCommits(t *testing.T, j *journal.Journal) (n int, err error) {
	t.Helper()
	err = j.Replay(t.Context(), 0, func(uint64, []byte) error { n++; return nil })
	return n, err
}

// A stream whose description is damaged is made again over its messages.
func TestJournalSurvivesItsDescription(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"meta.inf", "meta.sum"} {
		dir, files := filledJournal(t, 20, false)
		if err := os.Truncate(filepath.Join(filepath.Dir(filepath.Dir(files[0])), name), 0); err != nil {
			t.Fatal(err)
		}
		s := bustest.StartServer(t, natsd.Config{Dir: dir})
		wantDamage(t, bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{}), 20, nil)
	}
}

func TestDamageErrorSaysWhatCanBeRead(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]journal.DamageError{
		"revision 3 is missing, those up to 2 and from 4 on can be read":                    {First: 3, Last: 3, Before: 2, After: 4},
		"revisions 3 to 7 are missing, those up to 2 can be read, and none after them":      {First: 3, Last: 7, Before: 2},
		"revisions 1 to 7 are missing, those from 8 on can be read":                         {First: 1, Last: 7, After: 8},
		"revisions 1 to 7 are missing, none can be read. Keep a copy of the data directory": {First: 1, Last: 7},
	} {
		if !bytes.Contains([]byte(e.Error()), []byte(want)) {
			t.Errorf("%q does not say %q", e.Error(), want)
		}
	}
}

// FuzzCutBlock holds that any content of a file can be read, and that cutting once is
// enough.
func FuzzCutBlock(f *testing.F) {
	_, files := filledJournal(f, 20, false)
	whole, err := os.ReadFile(files[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, 0, byte(0))
	f.Add(whole, 3*commitSize, byte(1))
	f.Add(whole[:3*commitSize], commitSize, byte(0x80))
	f.Fuzz(func(t *testing.T, text []byte, at int, change byte) {
		text = bytes.Clone(text)
		if at >= 0 && at < len(text) {
			text[at] ^= change
		}
		out, err := natsd.CutBlock(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > len(text) {
			t.Errorf("%d bytes became %d", len(text), len(out))
		}
	})
}
