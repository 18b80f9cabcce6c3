package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// Buckets are the key-value buckets of tasks.
type Buckets interface {
	// All returns the buckets, in any order.
	All(ctx context.Context) ([]api.KVBucket, error)
	// Do performs an operation on a bucket as for a task to which it is granted.
	Do(ctx context.Context, bucket string, op *access.Operation) access.Answer
}

// kvBuckets answers with the buckets.
func (d *requests) kvBuckets(hard context.Context, m inbound) {
	var body api.KVBucketsRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		all, err := d.config.Buckets.All(ctx)
		if err != nil {
			return d.faultOf("", err)
		}
		slices.SortFunc(all, api.CompareKVBuckets)
		all = slices.DeleteFunc(all, func(b api.KVBucket) bool { return b.Bucket <= body.After })
		return d.shorten(len(all), func(n int) any {
			page := api.KVBucketsPage{Buckets: slices.Clip(all[:n])}
			if n == 0 {
				page.Buckets = []api.KVBucket{}
			}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].Bucket
			}
			return page
		})
	})
}

// kvList answers with keys of a bucket, fewer than asked for when it has to.
func (d *requests) kvList(hard context.Context, m inbound) {
	var body api.KVRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		var head struct {
			More bool `json:"more"`
		}
		var keys []api.KVKey
		text, fault := d.operate(ctx, access.KindKVList, &body, nil, &head)
		if fault != nil {
			return *fault
		}
		if err := json.Unmarshal(text, &keys); err != nil {
			return d.faultOf("", err)
		}
		return d.shorten(len(keys), func(n int) any {
			page := api.KVPage{Keys: slices.Clip(keys[:n])}
			if n > 0 && (n < len(keys) || head.More) {
				page.Next = keys[n-1].Key
			}
			return page
		})
	})
}

// kvGet answers with the value of a key.
func (d *requests) kvGet(hard context.Context, m inbound) {
	var body api.KVRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		var entry api.KVEntry
		value, fault := d.operate(ctx, access.KindKVGet, &body, nil, &entry)
		if fault != nil {
			return *fault
		}
		entry.Value = value
		return d.shorten(0, func(int) any { return entry })
	})
}

// kvPut writes a key.
func (d *requests) kvPut(hard context.Context, m inbound) {
	var body api.KVPutRequest
	if d.decode(m, &body) {
		d.changeKey(hard, m, access.KindKVPut, &body.KVRequest, body.Value)
	}
}

// kvDelete removes a key.
func (d *requests) kvDelete(hard context.Context, m inbound) {
	var body api.KVRequest
	if d.decode(m, &body) {
		d.changeKey(hard, m, access.KindKVDelete, &body, nil)
	}
}

// changeKey answers with the revision that a change has led to.
func (d *requests) changeKey(hard context.Context, m inbound, kind string, body *api.KVRequest, value []byte) {
	d.read(hard, m, func(ctx context.Context) answer {
		var change api.KVChange
		if _, fault := d.operate(ctx, kind, body, value, &change); fault != nil {
			return *fault
		}
		return answer{body: change}
	})
}

// operate performs an operation, whose head is the request, and decodes the head of the
// answer. It returns the answer's body, or what to answer the sender with.
func (d *requests) operate(ctx context.Context, kind string, body *api.KVRequest, value []byte, head any) ([]byte, *answer) {
	asked, err := json.Marshal(body)
	if err != nil {
		failed := d.faultOf("", err)
		return nil, &failed
	}
	done := d.config.Buckets.Do(ctx, body.Bucket, &access.Operation{Kind: kind, Head: asked, Body: value})
	if f := done.Fault; f != nil {
		message := f.Message
		if f.Target != "" {
			message = f.Target + ": " + message
		}
		failed := fault("", cmp.Or(answerCodes[f.Code], api.CodeUnavailable), message)
		return nil, &failed
	}
	if err := json.Unmarshal(done.Head, head); err != nil {
		failed := d.faultOf("", err)
		return nil, &failed
	}
	return done.Body, nil
}

// answerCodes are the codes of answers for those of operations; the others are
// api.CodeUnavailable.
var answerCodes = map[string]string{
	access.CodeInvalid:  run.RequestParams,
	access.CodeRefused:  run.RequestParams,
	access.CodeNotFound: api.CodeUnknownKey,
	access.CodeConflict: api.CodeConflict,
	access.CodeTooLarge: api.CodeFull,
}
