package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// again is how long after the first try a request may be repeated: less than the two
// minutes for which a stream remembers the id of a message.
const again = 90 * time.Second

// Load requests runs of the flows of a [Site] in all ways, and notes its requests and
// their answers in the ledger. Its zero value works.
type Load struct {
	Ledger  *Ledger
	Name    string  // prefix of all markers; unique among the loads of the ledger
	Workers int     // each has one request at a time; default 8
	Rate    float64 // of requests, in 1/s; default 100
	Bulk    float64 // share of runs with a payload of BulkSize; default 0.02
	Pad     int     // bytes of a bulky payload; default 64 KiB
	Seed    uint64

	Follower Follower // of the host's events while the load runs

	made int // entries so far, of all calls of Run
	mu   sync.Mutex
}

// Run sends requests until ctx ends or the connection is closed, and returns when all
// workers have. The fate of a request without an answer stays unknown. Run first
// repeats the unanswered requests of previous calls that can be repeated.
func (l *Load) Run(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := or(l.Workers, 8)
	pace := make(chan struct{}) // one receive for each request
	var working sync.WaitGroup
	working.Go(func() { l.Follower.Run(ctx, nc) })
	for i := range workers {
		c := &asker{Load: l, nc: nc, js: js, rand: rand.New(rand.NewPCG(l.Seed, uint64(l.next()+i)))}
		working.Go(func() {
			defer cancel() // a worker ends when the connection does, and then all do
			if i == 0 {
				c.repeat(ctx)
			}
			for range pace {
				if !c.ask(ctx) {
					return
				}
			}
		})
	}
	l.pace(ctx, pace)
	close(pace)
	working.Wait()
	return nil
}

func or[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}

// pace limits the rate of the workers' requests. A tick without a free worker is lost.
func (l *Load) pace(ctx context.Context, next chan<- struct{}) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / or(l.Rate, 100)))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		select {
		case next <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// next is a number that no other entry of the load has.
func (l *Load) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	return l.made
}

// asker is one worker.
type asker struct {
	*Load
	nc   *nats.Conn
	js   jetstream.JetStream
	rand *rand.Rand
}

// repeat repeats requests of which either the request or the answer may be lost.
func (a *asker) repeat(ctx context.Context) {
	for _, e := range a.Ledger.Open(Trigger, again) {
		a.publish(ctx, e)
	}
	for _, e := range a.Ledger.Open(Keyed, again) {
		a.request(ctx, e, nil)
	}
}

// ask makes one request. It reports whether the connection is still usable.
func (a *asker) ask(ctx context.Context) bool {
	e := Entry{Marker: fmt.Sprintf("%s%07d", a.Name, a.next()), Flow: a.flow(), N: a.rand.IntN(1000)}
	switch p := a.rand.Float64(); {
	case e.Flow == "nap":
		e.Way = Request
	case p < 0.4:
		e.Way = Trigger
	case p < 0.6:
		e.Way = Keyed
	default:
		e.Way = Request
	}
	a.Ledger.Send(e)
	switch {
	case e.Way == Trigger:
		a.publish(ctx, e)
	case e.Flow == "nap":
		a.cancel(ctx, e)
	case e.Way == Keyed:
		a.request(ctx, e, nil)
		if a.rand.IntN(4) == 0 {
			a.request(ctx, e, nil) // the ledger compares the answers
		}
	case a.rand.IntN(3) == 0:
		a.request(ctx, e, nats.Header{"Fh-Wait": {"30s"}})
	default:
		a.request(ctx, e, nil)
	}
	return ctx.Err() == nil && !a.nc.IsClosed()
}

func (a *asker) flow() string {
	if a.rand.Float64() < or(a.Bulk, 0.02) {
		return "bulk"
	}
	return []string{"chain", "chain", "chain", "fan", "fan", "flaky", "effect", "effect", "effect", "nap", "branches", "branches"}[a.rand.IntN(12)]
}

func (a *asker) body(e Entry) []byte {
	pad := ""
	if e.Flow == "bulk" {
		pad = strings.Repeat("x", or(a.Pad, 64<<10))
	}
	return fmt.Appendf(nil, `{"marker":%q,"n":%d,"pad":%q}`, e.Marker, e.N, pad)
}

// publish stores a message that requests a run. If the stream answers with an error,
// the message was not stored.
func (a *asker) publish(ctx context.Context, e Entry) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	msg := &nats.Msg{Subject: "fh.v1.trigger." + e.Flow, Data: a.body(e)}
	_, err := a.js.PublishMsg(ctx, msg, jetstream.WithMsgID(e.Marker), jetstream.WithRetryAttempts(0))
	if err == nil {
		a.Ledger.Accept(e.Marker, "")
	}
}

// answer is the answer to a request: a receipt, a record or an error.
type answer struct {
	Run   string `json:"run"`
	State string `json:"state"`
	Error *struct {
		Code string `json:"code"`
	} `json:"error"`
}

// request requests a run and notes the answer. It returns the id of the accepted run,
// empty when the answer contains none.
func (a *asker) request(ctx context.Context, e Entry, header nats.Header) (run string) {
	if e.Way == Keyed {
		header = nats.Header{"Fh-Key": {e.Marker}}
	}
	text, got, err := a.send(ctx, &nats.Msg{Subject: "fh.v1.api.run." + e.Flow, Data: a.body(e), Header: header})
	switch {
	case errors.Is(err, nats.ErrNoResponders) && e.Way == Request: // nobody received it
		a.Ledger.Refuse(e.Marker)
		sleep(ctx, idle)
	case err != nil:
	case got.Run != "" && got.State != "":
		a.Ledger.Finish(e.Marker, got.Run, text)
	case got.Run != "": // even with an error: the run was accepted
		a.Ledger.Accept(e.Marker, got.Run)
	case got.Error != nil && got.Error.Code == "busy":
		a.Ledger.Refuse(e.Marker)
	}
	return got.Run
}

// cancel requests a run and cancels it soon.
func (a *asker) cancel(ctx context.Context, e Entry) {
	run := a.request(ctx, e, nil)
	if run == "" {
		return
	}
	msg := &nats.Msg{Subject: "fh.v1.api.cancel", Data: fmt.Appendf(nil, `{"run":%q,"reason":"test"}`, run)}
	if _, got, err := a.send(ctx, msg); err == nil && got.Error == nil && got.Run == run {
		a.Ledger.Cancel(e.Marker)
	}
}

// idle is how long a worker pauses after it found no host.
const idle = 50 * time.Millisecond

// send sends a request and returns the answer, if there is one.
func (a *asker) send(ctx context.Context, msg *nats.Msg) (text []byte, got answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, 35*time.Second)
	defer cancel()
	reply, err := a.nc.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return nil, got, err
	}
	return reply.Data, got, json.Unmarshal(reply.Data, &got)
}
