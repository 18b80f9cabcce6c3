package intake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// LogReader is what an intake needs to show what tasks wrote.
type LogReader interface {
	// Read hands over the lines that match, oldest first, those behind the cursor
	// only, until yield returns false or there are none left. The cursor "" is the
	// beginning; yield gets the one behind its line. With follow it waits
	// for further lines instead, until ctx ends, whose cause it returns.
	Read(ctx context.Context, of *run.Record, q run.LogQuery, after string, follow bool, yield func(line run.LogEntry, cursor string) bool) error
}

// Bounds of a page of log lines.
const (
	maxLogLines = 1000
	maxLogBytes = 256 << 10
)

// logPage collects a page.
type logPage struct {
	api.LogPage
	cursors []string // behind each line
	bytes   int
}

// add takes a line, and reports whether there is room for more.
func (p *logPage) add(line run.LogEntry, cursor string) bool {
	p.Lines, p.cursors = append(p.Lines, line), append(p.cursors, cursor)
	p.bytes += len(line.Message) + len(line.Fields)
	p.Next = cursor
	return len(p.Lines) < maxLogLines && p.bytes < maxLogBytes
}

// first is the page with n lines only.
func (p *logPage) first(n int) api.LogPage {
	if n == len(p.Lines) {
		return p.LogPage
	}
	return api.LogPage{Lines: p.Lines[:n], Next: p.cursors[n-1]}
}

// logs answers with lines of a run's log.
func (d *requests) logs(hard context.Context, m inbound) {
	var body api.LogsRequest
	if !d.decode(m, &body) {
		return
	}
	d.longPoll(hard, m, func(ctx context.Context, wait time.Duration) answer {
		page := logPage{LogPage: api.LogPage{Lines: []run.LogEntry{}, Next: body.After}}
		err := d.fill(ctx, &page, body, body.Follow && wait > 0)
		switch {
		case err == nil, wait > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return d.shorten(len(page.Lines), func(n int) any { return page.first(n) })
		case d.soft.Err() != nil:
			return fault(body.Run, api.CodeUnavailable, errStopping.Error())
		}
		return d.faultOf(body.Run, err)
	})
}

// fill reads what is there. When that is nothing and the run continues, it waits for
// the first line, or for the end of the run.
func (d *requests) fill(ctx context.Context, page *logPage, body api.LogsRequest, follow bool) error {
	record, err := d.config.Control.Get(ctx, body.Run)
	if err != nil {
		return err
	}
	room := true
	err = d.config.Logs.Read(ctx, record, body.LogQuery, body.After, false, func(line run.LogEntry, cursor string) bool {
		room = page.add(line, cursor)
		return room
	})
	if err != nil {
		return err
	}
	page.End = room && record.State.Done()
	if page.End || !follow || len(page.Lines) > 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := d.starter.Wait(ctx, body.Run); err == nil {
			cancel()
		}
	})
	defer waiting.Wait()
	defer cancel()
	err = d.config.Logs.Read(ctx, record, body.LogQuery, body.After, true, func(line run.LogEntry, cursor string) bool {
		page.add(line, cursor)
		return false
	})
	if ctx.Err() != nil {
		return nil // the run has ended, or nothing came in time: the sender asks again
	}
	return err
}
