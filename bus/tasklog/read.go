package tasklog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Differences between the times of a run's record and those of the stream.
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
// is behind its line.
//
// Of a finished run all lines are found that this process has written, unless the
// server is away; of one that continues, those of the last Delay may be missing.
//
// Errors: *run.RequestError for a query or a cursor that cannot be right.
func (l *Store) Read(ctx context.Context, of *run.Record, q run.LogQuery, after string, follow bool, yield func(line run.LogEntry, cursor string) bool) error {
	r, err := l.newLogReading(of, q, after, yield)
	if err != nil {
		return err
	}
	if of.State.Done() {
		l.settle(ctx)
	}
	defer r.reader.Close(ctx)
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
func (l *Store) settle(ctx context.Context) {
	l.mu.Lock()
	running := l.running
	l.mu.Unlock()
	if !running {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_ = l.Flush(ctx) // the stored lines are worth reading in any case
}

// logsPull is how many messages a reading of a log asks for at a time: many may read, on
// one connection.
const logsPull = 64

// logReading is one reading of a run's log.
type logReading struct {
	logs   *Store
	reader jskit.Reader
	filter logFilter
	yield  func(run.LogEntry, string) bool
	cursor logCursor // where it begins
	until  time.Time // when messages are too late; zero: never
	last   uint64    // sequence at which to end; 0: never
	ended  bool
}

func (l *Store) newLogReading(of *run.Record, q run.LogQuery, after string, yield func(run.LogEntry, string) bool) (*logReading, error) {
	if err := bus.CheckToken(of.Flow); err != nil {
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
	r := &logReading{logs: l, filter: filter, yield: yield, cursor: cursor, reader: jskit.Reader{
		JS: l.js, Stream: bus.StreamLogs, Subject: bus.LogSubject(of.Flow, of.Run), Most: logsPull,
		Next: cursor.seq, Since: of.CreatedAt.Add(-logSkew),
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
	p := jskit.Backoff{Log: r.logs.config.Log, What: "read logs"}
	for !r.ended && r.reader.Next <= r.last {
		from := r.reader.Next
		err := r.reader.Fetch(ctx, r.take)
		if err == nil && r.reader.Next == from {
			return nil // the last message has left the stream meanwhile
		}
		if err := retryRead(ctx, &p, err); err != nil {
			return err
		}
	}
	return nil
}

// follow reads what is there and what comes.
func (r *logReading) follow(ctx context.Context) error {
	r.until = time.Time{}
	p := jskit.Backoff{Log: r.logs.config.Log, What: "read logs"}
	for !r.ended {
		if err := retryRead(ctx, &p, r.reader.Fetch(ctx, r.take)); err != nil {
			return err
		}
	}
	return nil
}

// retryRead gives the reason why reading cannot continue after an attempt. After one that failed for
// a reason that may pass, it waits.
func retryRead(ctx context.Context, p *jskit.Backoff, err error) error {
	switch {
	case err == nil:
		p.Done()
		return nil
	case jskit.Permanent(err):
		return err
	}
	return p.Wait(ctx, err)
}

// findLast finds the last message where the run's may be, so that its reader knows
// when to end.
func (r *logReading) findLast(ctx context.Context) (bool, error) {
	p := jskit.Backoff{Log: r.logs.config.Log, What: "read logs"}
	for {
		attempt, cancel := context.WithTimeout(ctx, jskit.APITimeout)
		last, err := r.logs.stream.GetLastMsgForSubject(attempt, r.reader.Subject)
		cancel()
		if err == nil {
			r.last = last.Sequence
			return r.last >= r.reader.Next && (r.reader.Next > 0 || !last.Time.Before(r.reader.Since)), nil
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		if err := retryRead(ctx, &p, err); err != nil {
			return false, err
		}
	}
}

// take hands over the lines of a message.
func (r *logReading) take(m jetstream.Msg, at jskit.Place) error {
	if !r.until.IsZero() && at.At.After(r.until) {
		r.ended = true
		return jskit.ErrEnough
	}
	if r.filter.selects(m.Headers()) && !r.hand(m, at.Seq) {
		r.ended = true
		return jskit.ErrEnough
	}
	if r.last > 0 && at.Seq >= r.last {
		return jskit.ErrEnough
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
