package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// Journal is what an engine needs of a journal; the engine's documentation of it
// holds.
type Journal interface {
	Append(ctx context.Context, after uint64, commit []byte) (revision uint64, err error)
	Replay(ctx context.Context, after uint64, apply func(revision uint64, commit []byte) error) error
	Compact(ctx context.Context, upTo uint64) error
	Limit() int
}

// Open makes an empty journal. again gives another handle on the same journal, as
// a second process or one that was started again would have it; it may give the
// same one where that is the only way to reach the content.
type Open func(t *testing.T) (journal Journal, again func() Journal)

// Run runs the suite, each test with a new journal.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"empty journal", testEmpty},
		{"replay gives what was appended", testReplay},
		{"replay from the middle", testMiddle},
		{"replay ends with the error of apply", testApplyError},
		{"replayed bytes belong to apply", testOwnership},
		{"appended bytes stay the caller's", testCallersBytes},
		{"reopened journal", testReopen},
		{"outdated revision is fenced", testFenced},
		{"revision that never was is fenced", testFuture},
		{"two writers", testTwoWriters},
		{"repeated append", testRepeat},
		{"same commit at two revisions", testSameCommit},
		{"concurrent appends", testConcurrent},
		{"commits up to the limit", testLarge},
		{"commit over the limit", testOverLimit},
		{"ended context", testContext},
		{"compaction removes the oldest", testCompact},
		{"compaction keeps the last", testCompactAll},
		{"compaction of nothing", testCompactNothing},
		{"compaction again and again", testCompactOften},
		{"fencing after compaction", testCompactFenced},
		{"repeated append after compaction", testCompactRepeat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, open)
		})
	}
}

type entry struct {
	revision uint64
	commit   string
}

func testEmpty(t *testing.T, open Open) {
	j, _ := open(t)
	expect(t, j, 0)
	if j.Limit() < 1 {
		t.Errorf("Limit() = %d", j.Limit())
	}
}

func testReplay(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 40)
	for i := range written[1:] {
		if written[i+1].revision <= written[i].revision {
			t.Errorf("revision %d follows %d", written[i+1].revision, written[i].revision)
		}
	}
	expect(t, j, 0, written...)
}

func testMiddle(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 7)
	for i, e := range written {
		expect(t, j, e.revision, written[i+1:]...)
	}
}

func testApplyError(t *testing.T, open Open) {
	j, _ := open(t)
	fill(t, j, 5)
	stop, calls := errors.New("stop"), 0
	err := j.Replay(t.Context(), 0, func(uint64, []byte) error {
		calls++
		if calls == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || calls != 3 {
		t.Errorf("Replay = %v after %d calls, want the error of apply after 3", err, calls)
	}
}

func testOwnership(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 3)
	err := j.Replay(t.Context(), 0, func(_ uint64, commit []byte) error {
		clear(commit)
		_ = append(commit, "more than there was"...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, j, 0, written...)
}

func testCallersBytes(t *testing.T, open Open) {
	j, _ := open(t)
	commit := []byte("first")
	revision := mustAppend(t, j, 0, commit)
	copy(commit, "other")
	expect(t, j, 0, entry{revision, "first"})
}

func testReopen(t *testing.T, open Open) {
	j, again := open(t)
	written := fill(t, j, 3)
	j = again()
	expect(t, j, 0, written...)
	last := written[2].revision
	revision := mustAppend(t, j, last, []byte("after"))
	expect(t, j, last, entry{revision, "after"})
}

func testFenced(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 3)
	for _, after := range []uint64{0, written[0].revision, written[1].revision} {
		wantFenced(t, j, after, "late")
	}
	expect(t, j, 0, written...)
}

func testFuture(t *testing.T, open Open) {
	j, _ := open(t)
	wantFenced(t, j, 9, "early")
	written := fill(t, j, 2)
	wantFenced(t, j, written[1].revision+9, "early")
	expect(t, j, 0, written...)
}

func testTwoWriters(t *testing.T, open Open) {
	one, again := open(t)
	two := again()
	first := mustAppend(t, one, 0, []byte("of one"))
	wantFenced(t, two, 0, "of two")
	second := mustAppend(t, two, first, []byte("of two"))
	wantFenced(t, one, first, "of one again")
	expect(t, one, 0, entry{first, "of one"}, entry{second, "of two"})
}

func testRepeat(t *testing.T, open Open) {
	j, again := open(t)
	written := fill(t, j, 2)
	for _, writer := range []Journal{j, again()} {
		if got := mustAppend(t, writer, written[0].revision, []byte(written[1].commit)); got != written[1].revision {
			t.Errorf("the repeated append gave revision %d, the first one %d", got, written[1].revision)
		}
	}
	expect(t, j, 0, written...)
}

func testSameCommit(t *testing.T, open Open) {
	j, _ := open(t)
	first := mustAppend(t, j, 0, []byte("same"))
	second := mustAppend(t, j, first, []byte("same"))
	expect(t, j, 0, entry{first, "same"}, entry{second, "same"})
}

func testConcurrent(t *testing.T, open Open) {
	j, again := open(t)
	const writers, rounds = 4, 10
	after := uint64(0)
	var won []entry
	for round := range rounds {
		var mu sync.Mutex
		var winners []entry
		var group sync.WaitGroup
		for w := range writers {
			handle := again()
			commit := fmt.Sprintf("round %d writer %d", round, w)
			group.Go(func() {
				revision, err := handle.Append(t.Context(), after, []byte(commit))
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					winners = append(winners, entry{revision, commit})
				} else if !errors.Is(err, run.ErrFenced) {
					t.Errorf("Append = %v, want run.ErrFenced", err)
				}
			})
		}
		group.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: winners are %v, want one", round, winners)
		}
		won, after = append(won, winners[0]), winners[0].revision
	}
	expect(t, j, 0, won...)
}

func testLarge(t *testing.T, open Open) {
	j, _ := open(t)
	var written []entry
	after := uint64(0)
	for _, size := range []int{1, 1 << 10, j.Limit() - 1, j.Limit(), 1} {
		commit := bytes.Repeat([]byte{byte('a' + len(written))}, size)
		after = mustAppend(t, j, after, commit)
		written = append(written, entry{after, string(commit)})
	}
	expect(t, j, 0, written...)
}

func testOverLimit(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 1)
	_, err := j.Append(t.Context(), written[0].revision, make([]byte, j.Limit()+1))
	if err == nil || errors.Is(err, run.ErrFenced) {
		t.Errorf("Append over the limit = %v, want another error", err)
	}
	expect(t, j, 0, written...)
	mustAppend(t, j, written[0].revision, []byte("fits"))
}

func testContext(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Append(ctx, written[1].revision, []byte("never")); !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want context.Canceled", err)
	}
	if err := j.Replay(ctx, 0, func(uint64, []byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Replay = %v, want context.Canceled", err)
	}
	expect(t, j, 0, written...)
}

func testCompact(t *testing.T, open Open) {
	j, again := open(t)
	written := fill(t, j, 7)
	mustCompact(t, j, written[2].revision)
	expect(t, j, 0, written[3:]...)
	expect(t, j, written[0].revision, written[3:]...)
	expect(t, j, written[4].revision, written[5:]...)
	written = append(written, entry{mustAppend(t, j, written[6].revision, []byte("after")), "after"})
	expect(t, again(), 0, written[3:]...)
}

func testCompactAll(t *testing.T, open Open) {
	j, again := open(t)
	last := fill(t, j, 5)[4]
	for _, upTo := range []uint64{last.revision, last.revision + 100, math.MaxUint64} {
		mustCompact(t, j, upTo)
		expect(t, j, 0, last)
	}
	next := entry{mustAppend(t, again(), last.revision, []byte("next")), "next"}
	expect(t, j, 0, last, next)
	mustCompact(t, j, last.revision)
	expect(t, again(), 0, next)
}

func testCompactNothing(t *testing.T, open Open) {
	j, _ := open(t)
	for _, upTo := range []uint64{0, 1, 9} {
		mustCompact(t, j, upTo)
	}
	written := fill(t, j, 3)
	mustCompact(t, j, 0)
	expect(t, j, 0, written...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Compact(ctx, written[1].revision); !errors.Is(err, context.Canceled) {
		t.Errorf("Compact = %v, want context.Canceled", err)
	}
	expect(t, j, 0, written...)
}

func testCompactOften(t *testing.T, open Open) {
	j, again := open(t)
	written := fill(t, j, 20)
	for i := 1; i < len(written)-1; i += 3 {
		mustCompact(t, j, written[i].revision)
		mustCompact(t, again(), written[i].revision)
		mustCompact(t, j, written[i-1].revision)
		expect(t, j, 0, written[i+1:]...)
	}
}

func testCompactFenced(t *testing.T, open Open) {
	j, _ := open(t)
	written := fill(t, j, 5)
	mustCompact(t, j, written[3].revision)
	for _, after := range []uint64{0, written[0].revision, written[3].revision, written[4].revision + 1} {
		wantFenced(t, j, after, "other")
	}
	expect(t, j, 0, written[4])
}

func testCompactRepeat(t *testing.T, open Open) {
	j, again := open(t)
	written := fill(t, j, 5)
	mustCompact(t, j, written[4].revision)
	for _, writer := range []Journal{j, again()} {
		if got := mustAppend(t, writer, written[3].revision, []byte(written[4].commit)); got != written[4].revision {
			t.Errorf("the repeated append gave revision %d, the first one %d", got, written[4].revision)
		}
	}
	expect(t, j, 0, written[4])
}

// fill appends n different commits to an empty journal.
func fill(t *testing.T, j Journal, n int) []entry {
	t.Helper()
	var written []entry
	after := uint64(0)
	for i := range n {
		commit := fmt.Sprintf("commit %d\x00<&>", i)
		after = mustAppend(t, j, after, []byte(commit))
		written = append(written, entry{after, commit})
	}
	return written
}

func mustAppend(t *testing.T, j Journal, after uint64, commit []byte) uint64 {
	t.Helper()
	revision, err := j.Append(t.Context(), after, commit)
	if err != nil {
		t.Fatalf("Append after %d: %v", after, err)
	}
	if revision <= after {
		t.Fatalf("Append after %d gave revision %d", after, revision)
	}
	return revision
}

func mustCompact(t *testing.T, j Journal, upTo uint64) {
	t.Helper()
	if err := j.Compact(t.Context(), upTo); err != nil {
		t.Fatalf("Compact up to %d: %v", upTo, err)
	}
}

func wantFenced(t *testing.T, j Journal, after uint64, commit string) {
	t.Helper()
	if _, err := j.Append(t.Context(), after, []byte(commit)); !errors.Is(err, run.ErrFenced) {
		t.Errorf("Append(%q) after %d = %v, want run.ErrFenced", commit, after, err)
	}
}

func expect(t *testing.T, j Journal, after uint64, want ...entry) {
	t.Helper()
	var got []entry
	err := j.Replay(t.Context(), after, func(revision uint64, commit []byte) error {
		got = append(got, entry{revision, string(commit)})
		return nil
	})
	if err != nil {
		t.Fatalf("Replay after %d: %v", after, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("Replay after %d gave %s, want %s", after, show(got), show(want))
	}
}

// show is short also for commits of megabytes.
func show(entries []entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%d:%.30q(%d bytes)", e.revision, e.commit, len(e.commit)))
	}
	return out
}
