package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/feed"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Starter is what an intake needs of an engine to start runs.
type Starter interface {
	// Submit returns after the commit that records the run, or that the filter rejected
	// no. A *run.RequestError refuses the request for good; any other error is taken
	// to pass.
	Submit(ctx context.Context, request run.Request) (run.Receipt, error)
	// Begin is Submit for who waits for the end of the run: it returns before the commit.
	Begin(ctx context.Context, request run.Request) (run.Receipt, error)
	// Sync returns after the commit of everything that was recorded before.
	Sync(ctx context.Context) error
	// SubmitBatch submits requests of one source in the given order and returns after
	// the commit. It ends at the first that Submit would return an error for, with that
	// error, and gives the number of those that were decided before it.
	SubmitBatch(ctx context.Context, requests []run.Request) (decided int, err error)
	// Wait returns when the run is done.
	Wait(ctx context.Context, id run.ID) (*run.Record, error)
	// Decide marks the position of a refused request as decided.
	Decide(ctx context.Context, position run.Position) error
	// Watermark is the last position of the source that is decided, the zero value for
	// none. Positions that are not after it are taken for decided.
	Watermark(ctx context.Context, source string) (run.Position, error)
}

// Subscription is a trigger of a flow that listens to messages.
type Subscription struct {
	Flow    string
	Trigger string
	Subject string // of core messages, wildcards allowed; with Stream a filter, empty for all of it
	Stream  string // JetStream stream; empty for core messages, which come at most once
	Durable string // name of the stream's consumer; default "flowhost_<flow>_<trigger>", with "=" for "/"
}

// Config configures an intake. Its zero value works.
type Config struct {
	Submitting int           // core messages and requests that are being submitted; default 256
	Reading    int           // requests that are being answered with runs and logs, which takes a processor; default 2 × GOMAXPROCS, at least 4
	Waiting    int           // requests that wait for something to happen; further ones are answered "busy"; default 4096
	Grace      time.Duration // after ctx ended, for answers under way; default 10s
	Version    string        // of the micro service; default "0.0.0"

	// App is where the triggers and the waits of flows listen: another account than that
	// of requests, triggers and dead letters. Default: the same connection.
	App *nats.Conn

	// Operator is the account whose requests find places to wait when clients have taken
	// all that they may. It needs a server that names the requester, which nobody can
	// forge only in another account than that of the requests. Default: requesters are
	// not distinguished.
	Operator string

	// Connected reports whether the connection of a requester is still there; its wait
	// is given up otherwise. It must not block. Default: each wait lasts as long as was
	// asked for.
	Connected func(api.Requester) bool

	// Control answers requests about runs. Default: the service starts runs only.
	Control Control

	// Logs are what the request "logs" reads, which needs Control too. Default: that
	// request is not served.
	Logs LogReader

	// Artifacts are what the request "artifact" reads, which needs Control too. Default: that
	// request is not served.
	Artifacts ArtifactReader

	// Buckets are those of tasks, for the operator. Default: requests about them are not
	// served.
	Buckets Buckets

	// Feed is what the request "follow" reads. Default: that request is not served.
	Feed *feed.Feed

	// Schedules and Backfills answer requests about schedules. Default: those are not
	// served.
	Schedules ScheduleControl
	Backfills BackfillControl

	// Host answers requests about the host as a whole. Default: those are not served.
	Host HostControl

	// Limits gives the state of limits, by name. Default: that request is not served.
	Limits func(ctx context.Context) ([]run.LimitStatus, error)

	// Waits are those of runs, which messages and requests end. Default: messages end
	// none, and such requests are not served.
	Waits Waits

	// Flows gives the flows that can be asked for. It must not block. Default: that
	// request is not served.
	Flows func() []api.FlowInfo

	// Deployed gives what is deployed. It must not block. Default: that request is not
	// served.
	Deployed func() api.Deployment

	// Ready gives the reason why no run can be started now, nil when it can. Requests are refused
	// with CodeUnavailable and the reason then, and messages of streams stay where they
	// are. It must not block. Default: always ready.
	Ready func() error

	// Stats gives what the micro service reports of the host, as JSON, beside its own
	// statistics: "data" of the endpoint "run" in the answer to
	// $SRV.STATS.flowhost. It must not block. Default: none.
	Stats func() any

	// Code gives the error code with which an error of the Starter or of a Control is
	// answered, or "" for CodeUnavailable. *run.RequestError has its own, and
	// run.ErrUnknown is CodeUnknownRun. Default: none.
	Code func(error) string

	Log *slog.Logger // default: none
}

// Intake turns messages into requests to an engine: those of the micro service
// "flowhost", of the stream FH_TRIGGERS, and those to which flows listen.
//
// Messages of a stream are submitted in their order: an engine takes whatever is
// before a source's watermark for decided. Core messages and requests are
// submitted concurrently.
type Intake struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	app     *nats.Conn
	appJS   jetstream.JetStream
	starter Starter
	config  Config
	log     *slog.Logger

	waiting   *waitList     // of requests that wait for something to happen
	following *waitList     // of requests for events
	named     named         // artifacts that were asked for
	ready     chan struct{} // closed by Run
	listening *listening    // set by NewIntake; empty until Run
}

// New makes an intake for the given triggers, whose names and subjects it
// checks. The connections stay the caller's.
func New(nc *nats.Conn, starter Starter, triggers []Subscription, cfg Config) (*Intake, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	if cfg.App == nil {
		cfg.App = nc
	}
	appJS, err := jetstream.New(cfg.App)
	if err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 10 * time.Second
	}
	if cfg.Version == "" {
		cfg.Version = "0.0.0"
	}
	in := &Intake{
		nc: nc, js: js, app: cfg.App, appJS: appJS, starter: starter, config: cfg, log: jskit.Logger(cfg.Log),
		waiting:   newWaitList("wait", orDefault(cfg.Waiting, 4096), connectionShare, requesterConfig{cfg.Operator, cfg.Connected}),
		following: newWaitList("follow events", maxFollowing, followingShare, requesterConfig{cfg.Operator, cfg.Connected}),
		ready:     make(chan struct{}),
	}
	if err := checkAll(triggers); err != nil {
		return nil, err
	}
	in.listening = &listening{Intake: in, first: triggers}
	return in, nil
}

// Bounds of what arrived by one subscription and was not looked at yet. What comes
// beyond is dropped, and the intake logs it.
const (
	pendingRequests = 64 << 10
	pendingBytes    = 4 * jskit.MaxPayload
)

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Ready is closed when Run listens: the server passes every request and core
// message on from then.
func (in *Intake) Ready() <-chan struct{} { return in.ready }

// Run takes messages until ctx ends. Then it takes no more, waits for the answers
// under way, but not longer than the grace, and returns nil. It waits for a server
// that is away, and returns an error when it cannot start to listen otherwise. It is
// called once.
func (in *Intake) Run(ctx context.Context) error {
	hard, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	d := newRequests(ctx, in)
	stopService, err := in.serve(hard, d)
	if err != nil {
		return fmt.Errorf("intake: %w", err)
	}
	if err := in.listening.begin(ctx, hard, d); err != nil {
		stopService()
		end(err)
		d.close()
		in.listening.wait()
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("intake: %w", err)
	}
	close(in.ready)
	var reading sync.WaitGroup
	reading.Go(func() { in.readTriggers(ctx, hard) })
	reading.Go(func() { in.waiting.sweep(ctx) })
	reading.Go(func() { in.following.sweep(ctx) })
	if in.config.Waits != nil {
		reading.Go(func() { in.followWaits(ctx, hard) })
	}

	<-ctx.Done()
	timer := time.AfterFunc(in.config.Grace, func() { end(errStopping) })
	defer timer.Stop()
	stopService()
	in.listening.stop()
	d.close()
	in.listening.wait()
	reading.Wait()
	return nil
}

// serviceStats is what one endpoint reports beside its own figures.
func (in *Intake) serviceStats(e *micro.Endpoint) any {
	if in.config.Stats == nil || e.Name != api.VerbRun {
		return nil
	}
	return in.config.Stats()
}

// unready gives the reason why no run can be started now.
func (in *Intake) unready() error {
	if in.config.Ready == nil {
		return nil
	}
	return in.config.Ready()
}

// queueService is the queue group of whoever answers requests.
const queueService = "flowhost"

// serve subscribes to requests. What it returns ends that, without waiting for
// messages that are here already.
func (in *Intake) serve(hard context.Context, d *requests) (stop func(), err error) {
	service, err := micro.AddService(in.nc, micro.Config{
		Name: "flowhost", Version: in.config.Version, Description: "starts, shows and controls runs of flows, and their schedules",
		QueueGroup: queueService, StatsHandler: in.serviceStats,
	})
	if err != nil {
		return nil, err
	}
	stop = func() { _ = service.Stop() } // fails when the connection is closed, and then it is over anyway
	for _, e := range d.endpoints() {
		err = errors.Join(err, service.AddEndpoint(e.name, micro.HandlerFunc(func(r micro.Request) {
			d.ask(hard, e, inbound{nc: in.nc, subject: r.Subject(), reply: answerable(r.Reply()), header: nats.Header(r.Headers()), data: r.Data()})
		}), micro.WithEndpointSubject(e.subject), micro.WithEndpointPendingLimits(pendingRequests, pendingBytes)))
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}
