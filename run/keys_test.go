package run

import (
	"strconv"
	"testing"
	"time"
)

func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	var k Keys
	add := func(flow, name string, id ID, at time.Time) { k.Add(Key{Flow: flow, Name: name, At: at, Run: id}) }
	add("f", "a", "r1", t0)
	add("f", "a", "r2", t0.Add(time.Hour))
	add("g", "a", "r3", t0.Add(time.Hour))
	if id, known := k.Run("f", "a", t0.Add(KeyAge)); !known || id != "r1" {
		t.Errorf("after %s: %q, %t, want the first run", KeyAge, id, known)
	}
	if id, known := k.Run("f", "a", t0.Add(KeyAge+1)); known {
		t.Errorf("after more than %s it still stands for %s", KeyAge, id)
	}
	add("f", "a", "r4", t0.Add(KeyAge+1))
	if id, _ := k.Run("f", "a", t0.Add(KeyAge+1)); id != "r4" || k.Len() != 2 {
		t.Errorf("used again after its time it stands for %q, and %d keys are known", id, k.Len())
	}
	for i := range MaxKeys {
		add("h", strconv.Itoa(i), "r", t0.Add(KeyAge+2))
	}
	if _, known := k.Run("f", "a", t0.Add(KeyAge+2)); known || k.Len() != MaxKeys {
		t.Errorf("%d keys are known", k.Len())
	}
}
