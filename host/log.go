package host

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// lineOverhead is what a line costs beside its text, so that empty lines are
// bounded, too.
const lineOverhead = 32

// logBuffer keeps the beginning and the end of what a guest logs: the first
// half of its limit fills up once, the rest is given to the latest lines. It
// belongs to the goroutine of its call.
type logBuffer struct {
	limit  int64
	head   logPart
	tail   logPart
	full   bool // the head takes no more lines
	drops  int
	follow follower
}

type logPart struct {
	lines []run.LogLine
	times []time.Time // of the lines, when somebody follows
	bytes int64
}

// add logs a line. The message is cut to a quarter of the log's limit.
func (b *logBuffer) add(level abi.Level, message string, fields json.RawMessage) {
	line := run.LogLine{Level: level.String(), Message: b.fit(message), Fields: fields}
	cost := lineCost(line)
	part := &b.head
	if b.full || b.head.bytes+cost > b.limit/2 {
		b.full, part = true, &b.tail
	}
	part.push(line, cost)
	if b.follow.hand != nil {
		at := time.Now()
		part.times = append(part.times, at)
		b.follow.take(at, line, cost, b.limit)
	}
	for len(b.tail.lines) > 0 && b.head.bytes+b.tail.bytes > b.limit {
		b.tail.shift()
		b.drops++
	}
}

func lineCost(l run.LogLine) int64 {
	return int64(len(l.Message)+len(l.Fields)) + lineOverhead
}

func (p *logPart) push(l run.LogLine, cost int64) {
	p.lines = append(p.lines, l)
	p.bytes += cost
}

func (p *logPart) shift() {
	p.bytes -= lineCost(p.lines[0])
	p.lines[0] = run.LogLine{} // the array lives on until append moves it
	p.lines = p.lines[1:]
	if len(p.times) > 0 {
		p.times = p.times[1:]
	}
}

// maxText is the length of the longest message, and of the longest fields.
func (b *logBuffer) maxText() int { return int(max(b.limit/4-lineOverhead, 0)) }

// fit makes text valid UTF-8 of a length that can be kept.
func (b *logBuffer) fit(text string) string {
	const mark = "…"
	if limit := b.maxText(); len(text) > limit {
		end := max(limit-len(mark), 0)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + mark
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// adopt makes the lines of another log this one's. Nobody has followed that.
func (b *logBuffer) adopt(other *logBuffer) {
	b.head, b.tail, b.full, b.drops = other.head, other.tail, other.full, other.drops
	if b.follow.hand != nil {
		b.follow.held = true
		b.head.stamp(time.Now())
		b.tail.stamp(time.Now())
	}
}

func (p *logPart) stamp(at time.Time) {
	p.times = slices.Repeat([]time.Time{at}, len(p.lines))
}

func (b *logBuffer) result() run.Log {
	return run.Log{Lines: append(b.head.lines, b.tail.lines...), Dropped: b.drops}
}
