package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// Times between what a run's record says and what the stream does.
const (
	// logSkew is by how much the clocks of the engine and of the server may differ.
	logSkew = 10 * time.Second

	// logLate is how long after a run its last lines may be stored: they wait for a
	// server as long as the run's end does, and go out at once when it is there.
	logLate = time.Minute

	// settleTime bounds the wait for lines that are on their way when a finished run
	// is read.
	settleTime = time.Second
)

// Read hands over the lines of a run that match, in the order in which they were
// stored, which within an attempt is that in which they were written. It begins
// behind the cursor, at the run's beginning for "", and ends when yield returns
// false or when all that is there now was read. With follow it waits for further
// lines instead, until ctx ends, whose cause it returns. yield gets the cursor that
// stands behind its line.
//
// Of a finished run all lines are found that this process has written, unless the
// server is away; of one that goes on, those of the last Delay may be missing.
//
// Errors: *run.RequestError for a query or a cursor that cannot be right.
func (l *Logs) Read(ctx context.Context, of *run.Record, q run.LogQuery, after string, follow bool, yield func(line run.LogEntry, cursor string) bool) error {
	r, err := l.newLogReading(of, q, after, yield)
	if err != nil {
		return err
	}
	if of.State.Done() {
		l.settle(ctx)
	}
	defer r.reader.close(ctx)
	if follow {
		err = r.follow(ctx)
	} else {
		err = r.toEnd(ctx)
	}
	if err != nil {
		return fmt.Errorf("logs of run %s: %w", of.Run, err)
	}
	return nil
}

// settle sees to it that what was written before can be read.
func (l *Logs) settle(ctx context.Context) {
	l.mu.Lock()
	running := l.running
	l.mu.Unlock()
	if !running {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_ = l.Flush(ctx) // what is stored is worth reading in any case
}

// logsPull is how many messages a reading of a log asks for at a time: many may read, on
// one connection.
const logsPull = 64

// logReading is one reading of a run's log.
type logReading struct {
	logs   *Logs
	reader reader
	filter logFilter
	yield  func(run.LogEntry, string) bool
	cursor logCursor // where it begins
	until  time.Time // when messages are too late; zero: never
	last   uint64    // sequence at which to end; 0: never
	ended  bool
}

func (l *Logs) newLogReading(of *run.Record, q run.LogQuery, after string, yield func(run.LogEntry, string) bool) (*logReading, error) {
	if err := CheckToken(of.Flow); err != nil {
		return nil, fmt.Errorf("logs of run %s: flow: %w", of.Run, err)
	}
	q.Run = of.Run
	filter, err := newLogFilter(of.Flow, q)
	if err != nil {
		return nil, err
	}
	cursor, err := parseLogCursor(after)
	if err != nil {
		return nil, err
	}
	r := &logReading{logs: l, filter: filter, yield: yield, cursor: cursor, reader: reader{
		js: l.js, stream: StreamLogs, subject: LogSubject(of.Flow, of.Run), most: logsPull,
		next: cursor.seq, since: of.CreatedAt.Add(-logSkew),
	}}
	if of.FinishedAt != nil {
		r.until = of.FinishedAt.Add(logLate)
	}
	return r, nil
}

// toEnd reads what is there.
func (r *logReading) toEnd(ctx context.Context) error {
	found, err := r.findLast(ctx)
	if !found || err != nil {
		return err
	}
	p := patience{log: r.logs.config.Log, what: "read logs"}
	for !r.ended && r.reader.next <= r.last {
		from := r.reader.next
		err := r.reader.fetch(ctx, r.take)
		if err == nil && r.reader.next == from {
			return nil // the last message has left the stream meanwhile
		}
		if err := goOn(ctx, &p, err); err != nil {
			return err
		}
	}
	return nil
}

// follow reads what is there and what comes.
func (r *logReading) follow(ctx context.Context) error {
	r.until = time.Time{}
	p := patience{log: r.logs.config.Log, what: "read logs"}
	for !r.ended {
		if err := goOn(ctx, &p, r.reader.fetch(ctx, r.take)); err != nil {
			return err
		}
	}
	return nil
}

// goOn tells why reading cannot go on after an attempt. After one that failed for
// a reason that may pass, it waits.
func goOn(ctx context.Context, p *patience, err error) error {
	switch {
	case err == nil:
		p.done()
		return nil
	case lasting(err):
		return err
	}
	return p.wait(ctx, err)
}

// findLast finds the last message where the run's may be, so that its reader knows
// when to end.
func (r *logReading) findLast(ctx context.Context) (bool, error) {
	p := patience{log: r.logs.config.Log, what: "read logs"}
	for {
		attempt, cancel := context.WithTimeout(ctx, apiTimeout)
		last, err := r.logs.stream.GetLastMsgForSubject(attempt, r.reader.subject)
		cancel()
		if err == nil {
			r.last = last.Sequence
			return r.last >= r.reader.next && (r.reader.next > 0 || !last.Time.Before(r.reader.since)), nil
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		if err := goOn(ctx, &p, err); err != nil {
			return false, err
		}
	}
}

// take hands over the lines of a message.
func (r *logReading) take(m jetstream.Msg, at place) error {
	if !r.until.IsZero() && at.at.After(r.until) {
		r.ended = true
		return errEnough
	}
	if r.filter.selects(m.Headers()) && !r.hand(m, at.seq) {
		r.ended = true
		return errEnough
	}
	if r.last > 0 && at.seq >= r.last {
		return errEnough
	}
	return nil
}

// hand hands over those lines of a message that match and are behind the cursor.
// It reports whether more are wanted.
func (r *logReading) hand(m jetstream.Msg, seq uint64) bool {
	for i, entry := range r.filter.decode(m) {
		if seq == r.cursor.seq && i < r.cursor.lines || !r.filter.shows(&entry) {
			continue
		}
		if here := (logCursor{seq: seq, lines: i + 1}); !r.yield(entry, here.String()) {
			return false
		}
	}
	return true
}

// logCursor is a place in a log: behind so many lines of a message.
type logCursor struct {
	seq   uint64
	lines int
}

func (c logCursor) String() string {
	return strconv.FormatUint(c.seq, 10) + "." + strconv.Itoa(c.lines)
}

func parseLogCursor(text string) (logCursor, error) {
	if text == "" {
		return logCursor{}, nil
	}
	first, second, _ := strings.Cut(text, ".")
	seq, err1 := strconv.ParseUint(first, 10, 64)
	lines, err2 := strconv.Atoi(second)
	if errors.Join(err1, err2) != nil || seq == 0 || lines < 0 {
		return logCursor{}, run.Requestf(run.RequestParams, "after: %q is not a cursor: give the one that an answer named", text)
	}
	return logCursor{seq: seq, lines: lines}, nil
}
