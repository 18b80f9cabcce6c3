package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/outfile"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

func artifactCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "artifact",
		Short: "List and download what tasks have stored",
		Long: `Lists and downloads artifacts: bytes that tasks store by their grant artifacts and name
in their outputs.`,
		Example: `  flowhost artifact list orders@latest
  flowhost artifact get orders@latest report -o report.pdf`,
	})
	cmd.AddCommand(artifactListCommand(a), artifactGetCommand(a))
	return cmd
}

func artifactListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "list RUN",
		Short: "List the artifacts that the tasks of a run have made",
		Long: `Lists the artifacts that the outputs of a run's tasks name.

` + remote.SelectorHelp,
		Example: `  flowhost artifact list @latest
  flowhost artifact list orders@latest --json | jq 'select(.size > 1e6)'`,
		Args:              cli.Between(1, 1, "RUN"),
		ValidArgsFunction: r.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := remote.PickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				record, err := client.Get(ctx, id)
				if err != nil {
					return err
				}
				if record.Truncated {
					a.Say("the record of run %s is too large for one message: some artifacts may be missing", id)
				}
				columns := &render.Columns{Names: []string{"TASK", "NAME", "SIZE", "TYPE", "DIGEST"}, States: -1, Narrow: []int{3}}
				return render.List(a.Out, record.Artifacts(), asJSON, columns, artifactRow)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each artifact")
	r.AddFlags(cmd.Flags())
	return cmd
}

func artifactRow(a run.TaskArtifact) []string {
	ref := run.TaskRef{Task: a.Task}
	if a.Key != nil {
		ref.Key = *a.Key
	}
	return []string{render.Printable(ref.Label()), render.Printable(a.Name), render.Size(a.Size), render.Printable(a.ContentType), a.Digest}
}

// download is artifact get with its flags.
type download struct {
	remote.Host
	output string
	asJSON bool
}

func artifactGetCommand(a *cli.App) *cobra.Command {
	d := &download{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "get RUN TASK [NAME]",
		Short: "Download an artifact",
		Long: `Downloads an artifact that the output of a task names, to a file or to stdout. NAME is
its name or its digest, required if the task has several. NAME[KEY] is an item of a
fan-out, NAME/NAME a task of the sub-flow that the first one runs.

The bytes are checked against the digest. A file gets its name only then, and one that
is not empty is never overwritten.

` + remote.SelectorHelp,
		Example: `  flowhost artifact get orders@latest report -o report.pdf
  flowhost artifact get nightly@latest 'load[eu]/copy' rows.csv | wc -l`,
		Args: cli.Between(2, 3, "RUN or TASK"),
		ValidArgsFunction: d.CompleteEach(func(ctx context.Context, client *api.Client, _ []string) []string {
			return remote.CompleteRuns(ctx, client)
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVarP(&d.output, "output", "o", "", "`FILE` to write; default: stdout")
	flags.BoolVar(&d.asJSON, "json", false, "print one JSON object about the artifact, once the file is written; requires --output")
	d.AddFlags(flags)
	return cmd
}

func (d *download) run(cmd *cobra.Command, args []string) error {
	if d.asJSON && d.output == "" {
		return cli.Usage(cmd, "--json requires --output: stdout has the artifact")
	}
	path, err := run.ParseTaskPath(args[1])
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	if d.output != "" {
		if err := outfile.Artifact.Check(d.output); err != nil {
			return cli.WithCode(cli.ExitInvalid, err)
		}
	}
	return d.Use(cmd, func(ctx context.Context, client *api.Client) error {
		id, err := remote.PickRun(ctx, client, args[0])
		if err != nil {
			return err
		}
		if id, err = remote.FindTask(ctx, client, id, path, false); err != nil {
			return err
		}
		record, err := client.Get(ctx, id)
		if err != nil {
			return err
		}
		found, err := remote.PickArtifact(record, remote.LastOf(path), append(args, "")[2])
		if err != nil {
			return err
		}
		return d.fetch(ctx, client, id, found)
	})
}

// fetch writes the artifact to where the flags say.
func (d *download) fetch(ctx context.Context, client *api.Client, id run.ID, found run.TaskArtifact) error {
	progress := func(int64, int64) {}
	if out := d.App.Errout; out.Interactive && (d.output != "" || !d.App.Out.Interactive) {
		line := render.NewStatusLine(out)
		defer line.Show("")
		progress = func(now, all int64) {
			line.Show(fmt.Sprintf("%s of %s", render.Size(now), render.Size(all)))
		}
	}
	write := func(w io.Writer) error { return d.Download(ctx, client, id, found.Digest, w, progress) }
	if d.output == "" {
		return write(d.App.Out)
	}
	if err := outfile.Artifact.Stream(d.output, write); err != nil || !d.asJSON {
		return err
	}
	return d.App.PrintJSON(found)
}
