//go:build defects

package defects_test

import (
	"errors"
	"testing"

	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// TestJudge shows that a loss cannot pass for anything else.
func TestJudge(t *testing.T) {
	t.Parallel()
	gone := errors.New("the server is away")
	tests := []struct {
		name string
		read map[uint64]uint32
		err  error
		want verdict
		lost int
	}{
		{"all", map[uint64]uint32{3: 30, 4: 40}, nil, intact, 0},
		{"one more that was under way", map[uint64]uint32{3: 30, 4: 40, 5: 50}, nil, intact, 0},
		{"what may be removed is there", map[uint64]uint32{2: 20, 3: 30, 4: 40}, nil, intact, 0},
		{"a gap", map[uint64]uint32{4: 40}, nil, silent, 1},
		{"no end", map[uint64]uint32{3: 30}, nil, silent, 1},
		{"another end", map[uint64]uint32{3: 30, 4: 50}, nil, silent, 1},
		{"nothing", nil, nil, silent, 2},
		{"what nobody wrote", map[uint64]uint32{3: 30, 4: 40, 5: 99}, nil, silent, 0},
		{"a gap that is reported", map[uint64]uint32{4: 40}, &journal.DamageError{First: 3, Last: 3}, reported, 1},
		{"a chain that is broken", map[uint64]uint32{3: 30}, &chainError{}, reported, 1},
		{"a published end", map[uint64]uint32{3: 30}, &lostEndError{3, 4}, reported, 1},
		{"a damaged commit", map[uint64]uint32{3: 30}, run.ErrDamaged, reported, 1},
		{"damage of what was under way", map[uint64]uint32{3: 30, 4: 40}, &lostEndError{4, 5}, alarm, 0},
		{"no server", nil, gone, unavailable, 0},
	}
	for _, c := range tests {
		l := newLedger()
		for _, sum := range []uint32{10, 20, 30, 40, 50} {
			l.sent[sum] = true
			if sum < 50 {
				l.acked = append(l.acked, commit{uint64(sum / 10), sum})
			}
		}
		l.floor = 2
		if v, lost := l.judge(&reading{commits: c.read, err: c.err}); v != c.want || lost != c.lost {
			t.Errorf("%s: %v, %d lost; want %v, %d", c.name, v, lost, c.want, c.lost)
		}
	}
}

// TestReadingChecksTheChain reads commits as the engine does.
func TestReadingChecksTheChain(t *testing.T) {
	t.Parallel()
	seal := func(after uint64) []byte { var c wire.Commit; return append([]byte{}, c.Seal(after)...) }
	r := &reading{commits: map[uint64]uint32{}}
	if err := errors.Join(r.check(1, seal(0)), r.check(5, seal(1))); err != nil {
		t.Fatal(err)
	}
	var chain *chainError
	if err := r.check(9, seal(7)); !errors.As(err, &chain) || *chain != (chainError{5, 9, 7}) {
		t.Errorf("a commit after a gap: %v", err)
	}
	damaged := seal(5)
	damaged[3] ^= 1
	if err := r.check(9, damaged); !errors.Is(err, run.ErrDamaged) {
		t.Errorf("a damaged commit: %v", err)
	}
}
