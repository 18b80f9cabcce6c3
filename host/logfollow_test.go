package host

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// Whatever the sizes of lines are, and whether or not they could be handed out at
// once, followers get them in order, know of all that they miss, and get no more
// than the limit.
func TestFollowerMissesNothingUntold(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 1, 64, 65, 100, 1000, 4 << 10, 64 << 10} {
		for _, step := range []int{0, 1, 7, 500, 20_000} {
			for _, begins := range []bool{true, false} {
				const written = 300
				var got []run.LogLine
				b := logBuffer{limit: limit, follow: follower{held: !begins, hand: func(at time.Time, l run.LogLine) {
					if at.IsZero() {
						t.Error("a line without a time")
					}
					got = append(got, l)
				}}}
				for i := range written {
					fields, _ := json.Marshal(map[string]int{"n": i})
					b.add(abi.LevelInfo, strings.Repeat("x", i*step%(step*3+1)), fields)
				}
				b.end()
				next, cost := 0, int64(0)
				for _, l := range got {
					var fields struct{ N, Lines int }
					if err := json.Unmarshal(l.Fields, &fields); err != nil {
						t.Fatal(err)
					}
					if fields.Lines > 0 {
						next += fields.Lines
						continue
					}
					if fields.N != next {
						t.Fatalf("limit %d, step %d: line %d where %d is next", limit, step, fields.N, next)
					}
					next++
					cost += lineCost(l)
				}
				if next != written || cost > limit {
					t.Errorf("limit %d, step %d: followers know of %d lines of %d, %d bytes", limit, step, next, written, cost)
				}
			}
		}
	}
}
