package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run"
)

// client asks for runs and for their end. It continues over the lives of the
// process: what it was not answered it asks again, when that is safe.
type client struct {
	*world
	rng  *rand.Rand
	name string
	seq  uint64
	own  []run.ID
}

func (c *client) work() {
	for range 1 + c.rng.IntN(8) {
		time.Sleep(pick(c.rng, 0, time.Millisecond, 100*time.Millisecond, 5*time.Second, 30*time.Second))
		switch c.rng.IntN(12) {
		case 0, 1:
			c.submit(run.Request{}, fmt.Sprintf("%s-%d", c.name, c.seq))
		case 2, 3:
			key := fmt.Sprint(c.name, "-key-", c.rng.IntN(3))
			c.submit(run.Request{Key: key}, "once-"+key)
		case 4, 5:
			c.seq++
			position := run.Position{Source: c.name, Seq: c.seq}
			c.submit(run.Request{Position: position}, fmt.Sprintf("once-%s-%d", c.name, c.seq))
		case 6:
			c.cancel()
		case 7, 11:
			c.again()
		case 8:
			c.watch()
		case 9, 10:
			c.signal()
		}
	}
}

// submit asks for a run until it has an answer, if asking again is safe.
func (c *client) submit(request run.Request, tag string) {
	once := strings.HasPrefix(tag, "once-")
	p := payload{N: c.rng.IntN(3), K: pick(c.rng, "a", "b"), Tag: tag, Items: randomItems(c.rng)}
	if chance(c.rng, 20) {
		p.Pad = strings.Repeat("x", run.BlobSize)
	}
	body, _ := json.Marshal(p)
	request.Flow = "f"
	request.Trigger = run.Trigger{Kind: run.TriggerManual, Time: time.Now(), Payload: body}
	c.mu.Lock()
	if once {
		c.wanted[tag] = true
	}
	c.mu.Unlock()
	for {
		e := c.present()
		if e == nil {
			return
		}
		c.mu.Lock()
		c.asked[tag]++
		c.mu.Unlock()
		receipt, err := c.receipt(e, request)
		if err == nil {
			c.accepted(request, tag, receipt)
			return
		}
		if busy := (*BusyError)(nil); !errors.As(err, &busy) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrDraining) {
			c.t.Errorf("a request is answered with %v", err)
			return
		}
		if !once && errors.Is(err, ErrStopped) {
			return // nobody knows whether there is a run
		}
		time.Sleep(time.Second)
	}
}

// receipt asks for a run in one of the ways after which it is durable.
func (c *client) receipt(e *Engine, request run.Request) (run.Receipt, error) {
	ctx := context.Background()
	if !chance(c.rng, 3) {
		return e.Submit(ctx, request)
	}
	receipt, err := e.Begin(ctx, request)
	if err != nil || receipt.Run == "" {
		return receipt, err
	}
	if chance(c.rng, 2) {
		return receipt, e.Sync(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.Wait(limited, receipt.Run); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		return receipt, err
	}
	return receipt, e.Sync(ctx)
}

func (c *client) accepted(request run.Request, tag string, receipt run.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wanted, tag)
	if receipt.Run == "" {
		if request.Position.Source == "" || c.asked[tag] == 1 {
			c.t.Errorf("request %s is answered with %+v", tag, receipt)
		}
		return // decided by an answer that was lost
	}
	if first := c.keys[request.Key]; request.Key != "" && first != "" && (first != receipt.Run || !receipt.Repeated) {
		c.t.Errorf("key %s is answered with %+v, and was with %s", request.Key, receipt, first)
	}
	c.keys[request.Key] = receipt.Run
	c.runs = append(c.runs, receipt.Run)
	c.own = append(c.own, receipt.Run)
}

// cancel stops a run or one of its tasks.
func (c *client) cancel() {
	e := c.present()
	if e == nil || len(c.own) == 0 {
		return
	}
	id := c.someRun(e)
	if chance(c.rng, 2) {
		ref := c.someTask()
		err := e.CancelTask(context.Background(), id, ref, "not this one")
		if err != nil && !errors.Is(err, ErrFinished) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrUnknownTask) {
			c.t.Errorf("the cancel of a task is answered with %v", err)
		}
		return
	}
	c.mu.Lock()
	c.asked[string(id)]++
	c.mu.Unlock()
	switch err := e.Cancel(context.Background(), id, "enough"); {
	case err == nil:
		c.mu.Lock()
		c.stopped[id] = true
		c.mu.Unlock()
	case !errors.Is(err, ErrFinished) && !errors.Is(err, ErrStopped):
		c.t.Errorf("a cancel is answered with %v", err)
	}
}

// someTask is one of either version of the flow, or an item of it.
func (c *client) someTask() run.TaskRef {
	t := pick(c.rng, pick(c.rng, pick(c.rng, c.plans...).flows...).all()...)
	if t.each != nil && chance(c.rng, 2) {
		return run.TaskRef{Task: t.name, Key: pick(c.rng, "0", "1", "2", "a", "b")}
	}
	return t.ref()
}

// watch follows a run to its end, over the lives of the process.
func (c *client) watch() {
	if len(c.own) == 0 {
		return
	}
	id, seen := pick(c.rng, c.own...), uint64(0)
	for {
		e := c.present()
		if e == nil {
			return
		}
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		record, version, err := e.Watch(ctx, id, seen)
		stop()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return // it waits for something; somebody else is asked next
		case errors.Is(err, ErrStopped):
			time.Sleep(time.Second)
			continue
		case err != nil:
			c.t.Errorf("run %s cannot be watched: %v", id, err)
			return
		case record.Run != id || version <= seen:
			c.t.Errorf("version %d of run %s follows %d of %s", version, record.Run, seen, id)
			return
		case record.State.Done():
			return
		}
		seen = version
	}
}
