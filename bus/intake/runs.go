package intake

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/internal/recordjson"
	"github.com/flowhost/flowhost/run"
)

// list answers with a page of runs, shorter than asked for when it has to be.
func (d *requests) list(hard context.Context, m inbound) {
	var body api.ListRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		page, err := d.config.Control.List(ctx, body.Query)
		if err != nil {
			return d.faultOf("", err)
		}
		if page.Runs == nil {
			page.Runs = []run.Summary{}
		}
		return d.shorten(len(page.Runs), func(n int) any {
			if n < len(page.Runs) {
				page.Runs, page.Next = page.Runs[:n], page.Runs[n-1].Run
			}
			return page
		})
	})
}

// get answers with a run's record.
func (d *requests) get(hard context.Context, m inbound) {
	var body api.RunRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		record, err := d.config.Control.Get(ctx, body.Run)
		if err != nil {
			return d.faultOf(body.Run, err)
		}
		return d.finished(record)
	})
}

// watchAnswer is the answer to a watch. Without a record nothing has changed in time.
type watchAnswer struct {
	Record  json.RawMessage `json:"record"`
	Version uint64          `json:"version"`
}

// watch answers with a run's record as soon as that is newer than what the sender
// has seen, or without one when that does not come in time.
func (d *requests) watch(hard context.Context, m inbound) {
	var body api.WatchRequest
	if !d.decode(m, &body) {
		return
	}
	d.longPoll(hard, m, func(ctx context.Context, wait time.Duration) answer {
		seen := body.Seen
		if wait == 0 {
			seen = 0 // the present one, at once
		}
		record, version, err := d.config.Control.Watch(ctx, body.Run, seen)
		switch {
		case err == nil && (version > body.Seen || record.State.Done()):
			return d.changed(record, version, body.Brief)
		case err == nil, wait > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return answer{body: watchAnswer{Version: body.Seen}}
		case d.soft.Err() != nil:
			return fault(body.Run, api.CodeUnavailable, errStopping.Error())
		}
		return d.faultOf(body.Run, err)
	})
}

func (d *requests) changed(record *run.Record, version uint64, brief bool) answer {
	var body json.RawMessage
	var err error
	if brief {
		body, err = recordjson.Fit(record, nil, d.largest(), recordjson.Slim, recordjson.Folded)
	} else {
		body, err = recordjson.Encode(record, d.largest())
	}
	if err == nil {
		body, err = run.EncodeJSON(watchAnswer{Record: body, Version: version})
	}
	if err == nil && len(body) > d.largest() {
		err = errors.New("its record is larger than a message may be")
	}
	if err != nil {
		return fault(record.Run, api.CodeTooLarge, "the run is "+string(record.State)+": "+err.Error())
	}
	return answer{body: rawBody(body)}
}

// cancel stops a run or one task of it.
func (d *requests) cancel(hard context.Context, m inbound) {
	var body api.CancelRequest
	if !d.decode(m, &body) {
		return
	}
	var err error
	if body.Task == "" {
		err = d.config.Control.Cancel(hard, body.Run, body.Reason)
	} else {
		err = d.config.Control.CancelTask(hard, body.Run, run.TaskRef{Task: body.Task, Key: body.Key}, body.Reason)
	}
	d.respond(m, d.done(body.Run, err))
}

// retry makes a new run of one that was there before.
func (d *requests) retry(hard context.Context, m inbound) {
	var body api.RetryRequest
	if !d.decode(m, &body) {
		return
	}
	d.start(hard, m,
		func(bool) (run.Receipt, error) { return d.config.Control.Retry(hard, body.Run, body.Again()) },
		func(err error) { d.respond(m, d.faultOf(body.Run, err)) })
}
