package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// StartRequest asks for a run of a flow.
type StartRequest struct {
	Flow    string
	Payload json.RawMessage            // default: none
	Params  map[string]json.RawMessage // by name; others come from the payload and the defaults
	Key     string                     // the same key for the same flow makes one run within a day; default: none
}

// Start starts a run and gives its receipt once the run is recorded.
func (c *Client) Start(ctx context.Context, s StartRequest) (run.Receipt, error) {
	header := nats.Header{}
	if s.Key != "" {
		header.Set(bus.HeaderKey, s.Key)
	}
	if len(s.Params) > 0 {
		params, err := run.EncodeJSON(s.Params)
		if err != nil {
			return run.Receipt{}, err
		}
		header.Set(bus.HeaderParams, string(params))
	}
	var answer ReceiptAnswer
	err := c.exchange(ctx, 0, &nats.Msg{Subject: bus.RunSubject(s.Flow), Header: header, Data: s.Payload}, &answer)
	return answer.receipt(), err
}

// Retry makes a new run of one that was there before.
func (c *Client) Retry(ctx context.Context, id run.ID, how run.RerunOptions) (run.Receipt, error) {
	body := RetryRequest{
		RunRequest: RunRequest{id}, Whole: how.Whole, Within: how.Within, Task: how.Task.Task, Key: how.Task.Key, Downstream: how.Downstream,
		Definition: definitionCurrent, Params: how.Params, FreshParams: how.FreshParams,
	}
	if how.Recorded {
		body.Definition = definitionRecorded
	}
	return c.receipt(ctx, VerbRetry, body)
}

// Cancel stops a run, or one task of it when that is named.
func (c *Client) Cancel(ctx context.Context, id run.ID, task run.TaskRef, reason string) error {
	_, err := c.receipt(ctx, VerbCancel, CancelRequest{RunRequest{id}, task.Task, task.Key, reason})
	return err
}

// Signal ends a wait of a run with a payload, nil for null.
func (c *Client) Signal(ctx context.Context, id run.ID, wait string, payload json.RawMessage) error {
	_, err := c.receipt(ctx, VerbSignal, SignalRequest{RunRequest{id}, wait, payload})
	return err
}

// Approve decides a wait of a run for an approval.
func (c *Client) Approve(ctx context.Context, id run.ID, wait string, a run.Approval) error {
	body := ApproveRequest{RunRequest{id}, wait, a.Payload, &a.Approved, a.By, a.Reason}
	_, err := c.receipt(ctx, VerbApprove, body)
	return err
}

func (c *Client) receipt(ctx context.Context, verb string, body any) (run.Receipt, error) {
	var answer ReceiptAnswer
	err := c.ask(ctx, verb, body, &answer)
	return answer.receipt(), err
}

// Get gives a run's present record.
func (c *Client) Get(ctx context.Context, id run.ID) (*run.Record, error) {
	record := new(run.Record)
	if err := c.ask(ctx, VerbGet, RunRequest{id}, record); err != nil {
		return nil, err
	}
	return record, nil
}

// List gives a page of runs, newest first. It may be shorter than the query allows
// and have a next one nevertheless.
func (c *Client) List(ctx context.Context, q run.Query) (run.Page, error) {
	var page run.Page
	err := c.ask(ctx, VerbList, q, &page)
	return page, err
}

// Watch gives a run's record, without the inputs and outputs of tasks, as soon as
// its version is above seen; nil when that takes longer than wait.
func (c *Client) Watch(ctx context.Context, id run.ID, seen uint64, wait time.Duration) (*run.Record, uint64, error) {
	var answer struct {
		Record  *run.Record `json:"record"`
		Version uint64      `json:"version"`
	}
	err := c.askFor(ctx, wait, VerbWatch, WatchRequest{RunRequest{id}, seen, true}, &answer)
	return answer.Record, answer.Version, err
}

// Follow gives events after the query's cursor. With a wait it waits that long for one
// when there is none. The page's cursor goes into the next query.
func (c *Client) Follow(ctx context.Context, q FollowQuery, wait time.Duration) (FollowPage, error) {
	var page FollowPage
	err := c.askFor(ctx, wait, VerbFollow, q, &page)
	return page, err
}

// Logs gives a page of a run's log behind a cursor, "" for the beginning. With a
// wait, and as long as the run continues, it waits that long for a line when there
// is none.
func (c *Client) Logs(ctx context.Context, q run.LogQuery, after string, wait time.Duration) (LogPage, error) {
	var page LogPage
	err := c.askFor(ctx, wait, VerbLogs, LogsRequest{q, after, wait > 0}, &page)
	return page, err
}
