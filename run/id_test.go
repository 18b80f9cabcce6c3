package run

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestDrawnIDs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	draw := func(seed uint64, at time.Time) ID {
		id := DrawID(at, rand.New(rand.NewPCG(seed, 0)).Uint64)
		if _, err := ParseID(string(id)); err != nil {
			t.Error(err)
		}
		return id
	}
	if a, b := draw(1, at), draw(1, at); a != b {
		t.Errorf("one seed gives %s and %s", a, b)
	}
	if a, b := draw(1, at), draw(2, at); a == b || a[:10] != b[:10] || a[10:] == b[10:] {
		t.Errorf("two seeds give %s and %s", a, b)
	}
	if a, b := draw(1, at), draw(1, at.Add(time.Millisecond)); a >= b {
		t.Errorf("%s is later than %s", b, a)
	}
}
