package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/run"
)

// logReading is logs with its flags.
type logReading struct {
	remote.Host
	query  run.LogQuery
	follow bool
	asJSON bool
}

func logsCommand(a *cli.App) *cobra.Command {
	l := &logReading{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "logs RUN [TASK]",
		Short: "Show the log of a run's tasks",
		Long: `Shows the log lines of a run, of all its tasks or of one, in the order of their
arrival. With -f it follows the log until the run ends. NAME[KEY] is an item of a
fan-out, NAME/NAME a task of the sub-flow that the first one runs. A sub-flow's lines
belong to its own run: name one of its tasks, or the run that 'flowhost show' lists.

` + remote.SelectorHelp,
		Example: `  flowhost logs @latest
  flowhost logs orders@latest price -f
  flowhost logs nightly@latest 'load[eu]/copy'
  flowhost logs 01M7YYDDJ8TYRD7Q2ARHP9C7BV --level warn --json | jq .message`,
		Args:              cli.Between(1, 2, "RUN"),
		ValidArgsFunction: l.Complete(remote.CompleteRuns),
		RunE:              func(cmd *cobra.Command, args []string) error { return l.show(cmd, args) },
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "follow the log until the run ends")
	flags.StringVar(&l.query.Level, "level", "", "minimum `LEVEL` to show: debug, info, warn or error")
	flags.IntVar(&l.query.Attempt, "attempt", 0, "only lines of the attempt of this `NUMBER`")
	flags.BoolVar(&l.asJSON, "json", false, "print one JSON object per line, for each log line")
	l.AddFlags(flags)
	return cmd
}

func (l *logReading) show(cmd *cobra.Command, args []string) error {
	if err := settings.CheckLevel(cmd, "level", l.query.Level); err != nil {
		return err
	}
	if l.query.Attempt < 0 {
		return cli.Usage(cmd, "--attempt %d: attempts are counted from 1", l.query.Attempt)
	}
	var path []run.TaskRef
	if len(args) > 1 {
		var err error
		if path, err = run.ParseTaskPath(args[1]); err != nil {
			return cli.Usage(cmd, "%w", err)
		}
	}
	return l.Use(cmd, func(ctx context.Context, client *api.Client) error {
		id, err := remote.PickRun(ctx, client, args[0])
		if err != nil {
			return err
		}
		if l.query.Run, err = remote.FindTask(ctx, client, id, path, !l.follow); err != nil {
			return err
		}
		l.query.Task, l.query.Key = remote.LastOf(path).Task, remote.LastOf(path).Key
		return l.read(ctx, client)
	})
}

// read shows page after page.
func (l *logReading) read(ctx context.Context, client *api.Client) error {
	wait := time.Duration(0)
	if l.follow {
		wait = remote.PollTime
	}
	for cursor := ""; ; {
		var page api.LogPage
		err := l.Persistently(ctx, func() (err error) {
			page, err = client.Logs(ctx, l.query, cursor, wait)
			return err
		})
		if err != nil {
			return err
		}
		for _, line := range page.Lines {
			if err := l.print(line); err != nil {
				return err
			}
		}
		cursor = page.Next
		if page.End || !l.follow && len(page.Lines) == 0 {
			return nil
		}
	}
}

func (l *logReading) print(e run.LogEntry) error {
	if l.asJSON {
		return render.EncodeLine(l.App.Out, e)
	}
	return l.App.Out.LogEntry(e)
}
