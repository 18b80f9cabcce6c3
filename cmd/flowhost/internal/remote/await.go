package remote

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// errWaited ends the wait for a run that is still open.
var errWaited = errors.New("--wait expired")

// Follower follows a run to its end and shows its result, as exec does.
type Follower struct {
	Host
	asJSON bool
	Form   string // of the progress
	Wait   waitFlag
}

// AddFlags adds the flags of the connection, --json and --progress.
func (e *Follower) AddFlags(flags *pflag.FlagSet) {
	e.Host.AddFlags(flags)
	flags.BoolVar(&e.asJSON, "json", false, "print the complete record of the run")
	flags.StringVar(&e.Form, "progress", "auto", "`FORMAT` of the progress on stderr: auto, plain, json or quiet")
}

// Await follows a run to its end, or until --wait expires.
func (e *Follower) Await(ctx context.Context, client *api.Client, id run.ID, p *render.Progress) error {
	waiting := ctx
	if e.Wait.time > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeoutCause(ctx, e.Wait.time, errWaited)
		defer stop()
	}
	err := e.follow(waiting, client, id, p)
	if cause := context.Cause(waiting); err != nil && cause != nil {
		e.App.Say("run %s continues: 'flowhost watch %s' follows it", id, id)
		if errors.Is(cause, errWaited) {
			return cli.WithCode(cli.ExitTimeout, cause)
		}
		return cause
	}
	if err != nil {
		return err
	}
	var record *run.Record
	err = e.Persistently(ctx, func() (err error) {
		record, err = client.Get(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	return e.conclude(record)
}

// follow feeds the progress with a run's events until it is done. When nothing happens for
// a while, it asks once what the run waits for.
func (e *Follower) follow(ctx context.Context, client *api.Client, id run.ID, p *render.Progress) error {
	diff := render.RecordDiff{Progress: p}
	for seen, asked := uint64(0), false; ; {
		wait := quietTime
		if asked {
			wait = PollTime
		}
		record, version, err := e.watch(ctx, client, id, seen, wait)
		quiet := err == nil && record == nil && !asked
		if quiet {
			record, version, err = e.watch(ctx, client, id, 0, 0) // the present one
		}
		if err != nil {
			return err
		}
		seen = version
		if record == nil {
			continue
		}
		if err := diff.Show(ctx, record); err != nil || record.State.Done() {
			return err
		}
		if quiet {
			diff.ShowWaits(record)
		}
		asked = quiet
	}
}

// watch gives the record of a run once its version is above seen; nil after the wait.
func (e *Follower) watch(ctx context.Context, client *api.Client, id run.ID, seen uint64, wait time.Duration) (record *run.Record, version uint64, err error) {
	err = e.Persistently(ctx, func() (err error) {
		record, version, err = client.Watch(ctx, id, seen, wait)
		return err
	})
	return record, version, err
}

// conclude prints the result of a run and returns the exit code for it.
func (e *Follower) conclude(record *run.Record) error {
	if err := e.App.Out.Result(record, e.asJSON); err != nil || record.State == run.Succeeded {
		return err
	}
	e.App.Errout.ShowRemoteFailure(record)
	if record.State == run.Canceled {
		return cli.Quiet(cli.ExitCanceled)
	}
	return cli.Quiet(cli.ExitFailed)
}
