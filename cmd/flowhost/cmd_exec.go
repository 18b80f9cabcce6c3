package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// errTimedOut ends the wait for a run.
var errTimedOut = errors.New("--timeout expired")

// execution is exec with its flags.
type execution struct {
	*cli.App
	files    flowfiles.Flags
	flow     string
	params   []string
	input    string
	asJSON   bool
	timeout  time.Duration
	data     string
	config   string
	progress string
}

func execCommand(a *cli.App) *cobra.Command {
	x := &execution{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "exec PATH",
		Short: "Run one flow now and print its output",
		Long: `Runs one flow of PATH, a flow file or a directory, in this process, waits for it to
finish and prints its output as JSON. The flow's triggers do not fire. Ctrl-C cancels
the run, a second one ends the program immediately.

Without --data, artifacts are removed at the end. Outputs over 4 MiB, which are stored
as artifacts, are printed whole where they are part of the run's output.`,
		Example: `  flowhost exec hello.hcl
  flowhost exec flows/ --flow orders --param region=eu --input @order.json
  echo '{"total":5}' | flowhost exec orders.hcl --input - --json | jq .tasks`,
		Args: cli.Between(1, 1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return x.exec(cmd, args[0]) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitTimeout, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&x.flow, "flow", "", "`NAME` of the flow; optional if there is only one")
	flags.StringArrayVar(&x.params, "param", nil, "param of the run, as `NAME=VALUE`; may be repeated")
	flags.StringVar(&x.input, "input", "null", "the run's payload: `JSON`, @FILE, or - for stdin")
	x.files.AddFlags(flags)
	flags.BoolVar(&x.asJSON, "json", false, "print the complete record of the run")
	flags.DurationVar(&x.timeout, "timeout", 0, "cancel the run after this `DURATION` (exit code 5); default: never")
	flags.StringVar(&x.data, "data", "", "keep the journal in this `DIRECTORY`; default: in memory")
	flags.StringVar(&x.config, "config", "", "settings `FILE`; default: "+settings.FileName+" in the flows' directory")
	flags.StringVar(&x.progress, "progress", "auto", "`FORMAT` of the progress on stderr: auto, plain, json or quiet")
	return cmd
}

func (x *execution) exec(cmd *cobra.Command, path string) error {
	p, err := render.NewProgress(x.Errout, x.progress)
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	if x.timeout < 0 {
		return cli.Usage(cmd, "--timeout %s: a positive duration is expected", x.timeout)
	}
	s, err := settings.Read(x.App, x.config, path)
	if err != nil {
		return err
	}
	s.Data, s.NATSURL = x.data, "" // the host's own journal is not for single runs
	if s.Workers != nil && *s.Workers == 0 {
		s.Workers = nil // only the host is paused by it
	}
	soft, hard, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	log := x.Log(slog.LevelError) // the progress shows the rest
	outside, err := serve.NewOutside(s, log)
	if err != nil {
		return err
	}
	defer outside.Close()
	h, err := serve.NewHost(soft, s, outside, nil, log)
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	options, err := x.files.Options(cmd, x.Environ, host.Catalog{Host: h, Compile: true})
	if err != nil {
		return err
	}
	options.Opened = s.Opened
	options.Ceilings, options.Operator = s.Ceilings, s.Operator
	set, err := flowfiles.Load(soft, x.App, []string{path}, options)
	if err != nil {
		return err
	}
	outside.Deploy(set)
	request, err := x.request(cmd, set)
	if err != nil {
		return err
	}
	config := serve.NodeConfig{
		Settings: s, Host: h, Flows: options, Log: log,
		Observers: []engine.Observer{p},
		Invoker: func(next engine.Invoker) engine.Invoker {
			return keepLogs(p)(outside.StoreOutputs(outside.Guard(next)))
		},
	}
	if s.Data != "" {
		if config.Link, err = serve.OpenLink(soft, s, false, set, log); err != nil {
			return err
		}
		defer config.Link.Close()
		if err := outside.Connect(config.Link, &s); err != nil {
			return err
		}
	}
	record, why, err := x.perform(soft, hard, config, set, request)
	if err != nil {
		return err
	}
	if x.data == "" {
		if err := x.keepWhole(hard, outside, record); err != nil {
			return err
		}
	}
	return x.show(record, why, set.Flow(request.Flow), p)
}

// keepLogs returns a decorator that passes the guests' logs to the progress.
func keepLogs(p *render.Progress) func(engine.Invoker) engine.Invoker {
	return func(next engine.Invoker) engine.Invoker {
		return serve.InvokerFunc(func(ctx context.Context, call run.Call) (run.Result, error) {
			result, err := next.Invoke(ctx, call)
			p.KeepLog(&call, result.Log)
			return result, err
		})
	}
}

// request is the request that the flags describe.
func (x *execution) request(cmd *cobra.Command, set *flows.Set) (run.Request, error) {
	f, err := flowfiles.Pick(cmd, set, x.flow)
	if err != nil {
		return run.Request{}, err
	}
	payload, err := x.ReadJSON(x.input)
	if err != nil {
		return run.Request{}, err
	}
	params, err := flowfiles.ParseParams(cmd, f, x.params)
	if err != nil {
		return run.Request{}, err
	}
	return run.Request{
		Flow:    f.Name,
		Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now().UTC(), Payload: payload},
		Params:  params,
	}, nil
}

// perform runs the request to its end. why is the cause of its cancellation: nil,
// ErrInterrupted or errTimedOut.
func (x *execution) perform(soft, hard context.Context, config serve.NodeConfig, set *flows.Set, request run.Request) (record *run.Record, why, err error) {
	n, err := serve.NewNode(hard, config)
	if err != nil {
		return nil, nil, err
	}
	n.Start(hard)
	record, why, err = x.submit(soft, hard, n.Engine, set, request)
	if fault := n.Stop(hard); fault != nil && record == nil {
		err = fault
	}
	return record, why, err
}

func (x *execution) submit(soft, hard context.Context, e *engine.Engine, set *flows.Set, request run.Request) (record *run.Record, why, err error) {
	for _, f := range set.Flows {
		f.Triggers = nil // only this request starts runs here
	}
	if err := e.Deploy(hard, set); err != nil {
		return nil, nil, err
	}
	if p := e.Stats().Pause; p != nil {
		return nil, nil, cli.Exitf(cli.ExitFailed, "the journal is that of a host which is paused since %s: %s; start the host and resume it with 'flowhost resume --host'",
			render.LocalTime(p.At), render.Printable(p.Reason))
	}
	receipt, err := e.Submit(hard, request)
	if err == nil {
		err = remote.Refusal(receipt)
	}
	if err != nil {
		return nil, nil, err
	}
	waiting := soft
	if x.timeout > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeoutCause(soft, x.timeout, errTimedOut)
		defer stop()
	}
	record, err = e.Wait(waiting, receipt.Run)
	if err == nil || hard.Err() != nil || waiting.Err() == nil {
		return record, nil, err
	}
	why = context.Cause(waiting)
	if err := e.Cancel(hard, receipt.Run, why.Error()); err != nil && !errors.Is(err, engine.ErrFinished) {
		return nil, why, err
	}
	record, err = e.Wait(hard, receipt.Run)
	return record, why, err
}

// keepWhole puts stored outputs into the output of the run: artifacts end with the process. It
// warns of others.
func (x *execution) keepWhole(ctx context.Context, outside *serve.Outside, record *run.Record) error {
	output, err := outside.Expand(ctx, record.Output)
	if err != nil {
		return fmt.Errorf("reading a large output: %w", err)
	}
	record.Output = output
	for range run.ArtifactDigests(output) {
		x.Say("Warning: the output names artifacts, which are removed now. To keep them, use --data DIRECTORY;\n'flowhost run PATH --data DIRECTORY' serves them to 'flowhost artifact get'.")
		break
	}
	return nil
}

// show prints the result of the run and returns the exit code for it.
func (x *execution) show(record *run.Record, why error, f *flows.Flow, p *render.Progress) error {
	if err := x.Out.Result(record, x.asJSON); err != nil || record.State == run.Succeeded {
		return err
	}
	x.Errout.ShowFailure(record, f, p)
	switch {
	case errors.Is(why, cli.ErrInterrupted):
		return cli.Quiet(cli.ExitInterrupted)
	case errors.Is(why, errTimedOut):
		return cli.Quiet(cli.ExitTimeout)
	case record.State == run.Canceled:
		return cli.Quiet(cli.ExitCanceled)
	}
	return cli.Quiet(cli.ExitFailed)
}
