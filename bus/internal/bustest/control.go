package bustest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/flowhost/flowhost/run"
)

const (
	GoneRun = run.ID("01HZXW0000000000000000G0NE")
	DoneRun = run.ID("01HZXW0000000000000000D0NE")
	OpenRun = run.ID("01HZXW0000000000000000CPEN")
)

var ErrFinished, ErrUnfinished = errors.New("the run has finished already"), errors.New("the run has not finished")

// Control stands for an engine that has two runs: one that has succeeded, and one
// that lasts until it is released.
type Control struct {
	mu      sync.Mutex
	done    []string        // what was asked for
	version uint64          // of openRun
	changed chan struct{}   // closed with each version
	large   json.RawMessage // output of openRun's task, error of those in a list
}

func NewControl() *Control { return &Control{version: 1, changed: make(chan struct{})} }

// SetLarge makes the answers large.
func (c *Control) SetLarge(value json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.large = value
}

func (c *Control) getLarge() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.large
}

func (c *Control) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, fmt.Sprintf(format, args...))
}

// Advance gives openRun another version.
func (c *Control) Advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Control) Get(_ context.Context, id run.ID) (*run.Record, error) {
	tasks := []run.TaskRecord{{Task: "a", State: run.Running, Input: json.RawMessage("1"), Output: c.getLarge()}}
	switch id {
	case DoneRun:
		return &run.Record{Run: id, Flow: "orders", State: run.Succeeded, Output: json.RawMessage(`"<ok>"`)}, nil
	case OpenRun:
		return &run.Record{Run: id, Flow: "orders", State: run.Running, Tasks: tasks}, nil
	}
	return nil, fmt.Errorf("run %s: %w", id, run.ErrUnknown)
}

// List answers with as many runs as asked for, from an endless supply.
func (c *Control) List(_ context.Context, q run.Query) (run.Page, error) {
	c.note("list %s %v %s", q.Flow, q.States, q.Before)
	if q.Flow == "none" {
		return run.Page{}, nil
	}
	page := run.Page{Next: GoneRun}
	for i := range q.Size() {
		id := run.ID(fmt.Sprintf("01HZXW%020d", q.Size()-i))
		page.Runs = append(page.Runs, run.Summary{Run: id, Flow: q.Flow, Error: strings.Trim(string(c.getLarge()), `"`)})
	}
	return page, nil
}

func (c *Control) Watch(ctx context.Context, id run.ID, seen uint64) (*run.Record, uint64, error) {
	for {
		c.mu.Lock()
		version, changed := c.version, c.changed
		c.mu.Unlock()
		record, err := c.Get(ctx, id)
		if err != nil || version > seen {
			return record, version, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}

func (c *Control) Cancel(ctx context.Context, id run.ID, reason string) error {
	c.note("cancel %s %s", id, reason)
	if id == DoneRun {
		return ErrFinished
	}
	_, err := c.Get(ctx, id)
	return err
}

func (c *Control) CancelTask(_ context.Context, id run.ID, task run.TaskRef, reason string) error {
	c.note("cancel %s %s %s %s", id, task.Task, task.Key, reason)
	return nil
}

func (c *Control) Retry(_ context.Context, id run.ID, how run.RerunOptions) (run.Receipt, error) {
	c.note("retry %s %t%s", id, how.Whole, strings.TrimPrefix(fmt.Sprintf(" %+v", how), fmt.Sprintf(" %+v", run.RerunOptions{Whole: how.Whole})))
	if id == OpenRun {
		return run.Receipt{}, ErrUnfinished
	}
	return run.Receipt{Run: RunID, Accepted: true}, nil
}

func (c *Control) Asked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.done, "\n")
}
