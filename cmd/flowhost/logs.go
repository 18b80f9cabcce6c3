package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// logReading is logs with its flags.
type logReading struct {
	remote
	query  run.LogQuery
	follow bool
	asJSON bool
}

func (a *app) logsCommand() *cobra.Command {
	l := &logReading{remote: remote{app: a}}
	cmd := exits(&cobra.Command{
		Use:   "logs RUN [TASK]",
		Short: "Show what the tasks of a run wrote",
		Long: `Shows the lines that the tasks of a run wrote, in the order in which they came, of
all tasks or of one. With -f it goes on until the run ends. NAME[KEY] is an item of
a fan-out, NAME/NAME a task of the sub-flow that the first one runs. The lines of
sub-flows are those of their own runs: name a task of one, or the run that
'flowhost show' tells.

` + selectorHelp,
		Example: `  flowhost logs @latest
  flowhost logs orders@latest price -f
  flowhost logs nightly@latest 'load[eu]/copy'
  flowhost logs 01M7YYDDJ8TYRD7Q2ARHP9C7BV --level warn --json | jq .message`,
		Args:              between(1, 2, "RUN"),
		ValidArgsFunction: l.complete(latestRuns),
		RunE:              func(cmd *cobra.Command, args []string) error { return l.show(cmd, args) },
	}, exitInvalid, exitUnreachable, exitInterrupted)
	flags := cmd.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "go on until the run ends")
	flags.StringVar(&l.query.Level, "level", "", "least severe `LEVEL` to show: debug, info, warn or error")
	flags.IntVar(&l.query.Attempt, "attempt", 0, "only the lines of the attempt of this `NUMBER`")
	flags.BoolVar(&l.asJSON, "json", false, "print one object for each line, on a line of its own")
	l.add(flags)
	return cmd
}

func (l *logReading) show(cmd *cobra.Command, args []string) error {
	if err := checkLevel(cmd, "level", l.query.Level); err != nil {
		return err
	}
	if l.query.Attempt < 0 {
		return usage(cmd, "--attempt %d: attempts are counted from 1", l.query.Attempt)
	}
	var path []run.TaskRef
	if len(args) > 1 {
		var err error
		if path, err = run.ParseTaskPath(args[1]); err != nil {
			return usage(cmd, "%w", err)
		}
	}
	return l.use(cmd, func(ctx context.Context, client *api.Client) error {
		id, err := pickRun(ctx, client, args[0])
		if err != nil {
			return err
		}
		if l.query.Run, err = findTask(ctx, client, id, path, !l.follow); err != nil {
			return err
		}
		l.query.Task, l.query.Key = lastOf(path).Task, lastOf(path).Key
		return l.read(ctx, client)
	})
}

// read shows page after page.
func (l *logReading) read(ctx context.Context, client *api.Client) error {
	wait := time.Duration(0)
	if l.follow {
		wait = pollTime
	}
	for cursor := ""; ; {
		var page api.LogPage
		err := l.persistently(ctx, func() (err error) {
			page, err = client.Logs(ctx, l.query, cursor, wait)
			return err
		})
		if err != nil {
			return err
		}
		for _, line := range page.Lines {
			if err := l.line(line); err != nil {
				return err
			}
		}
		cursor = page.Next
		if page.End || !l.follow && len(page.Lines) == 0 {
			return nil
		}
	}
}

func (l *logReading) line(e run.LogEntry) error {
	if l.asJSON {
		return encodeLine(l.out, e)
	}
	who := e.Task
	if e.Key != "" {
		who += "[" + printable(e.Key) + "]"
	}
	if e.Attempt > 1 {
		who += fmt.Sprintf("#%d", e.Attempt)
	}
	text := l.out.paint(dim, e.At.Local().Format("15:04:05.000")) + " " + who + " " + l.out.paint(levelColor(e.Level), strings.ToUpper(e.Level))
	for i, part := range strings.Split(e.Message, "\n") {
		if i > 0 {
			text += "\n "
		}
		text += " " + printable(part)
	}
	if len(e.Fields) > 0 {
		text += " " + l.out.paint(dim, printable(string(e.Fields)))
	}
	_, err := fmt.Fprintln(l.out, text)
	return err
}

func levelColor(level string) string {
	switch level {
	case "error":
		return red
	case "warn":
		return yellow
	case "debug":
		return dim
	}
	return bold
}
