package host

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// follower hands out the lines of a call's log as they are written, until three
// quarters of the log's limit are used. What comes then is held back until the
// call has ended: the rest of the limit belongs to the last lines, because what
// a guest wrote before it trapped is what readers look for. The zero value
// belongs to a log that nobody follows.
type follower struct {
	hand  func(time.Time, run.LogLine)
	held  bool  // lines wait for the end
	lines int   // handed out
	bytes int64 // of them
}

// take hands a line out, or holds it back and all those after it.
func (f *follower) take(at time.Time, line run.LogLine, cost, limit int64) {
	f.held = f.held || f.bytes+cost > limit/4*3
	if f.held {
		return
	}
	f.lines++
	f.bytes += cost
	f.hand(at, line)
}

// end hands out what was held back, as far as the limit goes: the beginning, of a
// log of which nothing was handed out so far, and the last lines.
func (b *logBuffer) end() {
	f := &b.follow
	if f.hand == nil {
		return
	}
	for i := f.lines; i < len(b.head.lines); i++ {
		f.lines++
		f.bytes += lineCost(b.head.lines[i])
		f.hand(b.head.times[i], b.head.lines[i])
	}
	before := len(b.head.lines) + b.drops // lines before the tail's first
	next := b.tail.last(b.limit-f.bytes, f.lines-before)
	lines, times := b.tail.lines[next:], b.tail.times[next:]
	if left := before + next - f.lines; left > 0 {
		at := time.Now()
		if len(times) > 0 {
			at = times[0]
		}
		f.hand(at, leftOut(left))
	}
	for i, line := range lines {
		f.hand(times[i], line)
	}
}

// last is the index of the first of the last lines that cost no more than room
// together; none of them is before the index from.
func (p *logPart) last(room int64, from int) int {
	i := len(p.lines)
	for i > max(from, 0) {
		if room -= lineCost(p.lines[i-1]); room < 0 {
			break
		}
		i--
	}
	return i
}

// leftOut is the line that represents those that nobody will see.
func leftOut(lines int) run.LogLine {
	return run.LogLine{
		Level: abi.LevelWarn.String(), Message: "lines were left out: the log is over its limit",
		Fields: json.RawMessage(fmt.Sprintf(`{"lines":%d}`, lines)),
	}
}
