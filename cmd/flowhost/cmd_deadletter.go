package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

func deadletterCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "deadletter",
		Short: "List, show, send and discard dead letters",
		Long: `Dead letters are messages that could make no run, or end no wait: the payload is not
what the flow takes, the flow does not exist, or flows start each other without an end.
The host keeps them for 30 days, with the reason.`,
		Example: `  flowhost deadletter list --flow orders
  flowhost deadletter show 7
  flowhost deadletter send 7 9
  flowhost deadletter discard --all --flow orders`,
	})
	cmd.AddCommand(deadletterListCommand(a), deadletterShowCommand(a), deadletterSendCommand(a), deadletterDiscardCommand(a))
	return cmd
}

func deadletterListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var flow string
	var limit int
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "list",
		Short: "List dead letters, newest first",
		Example: `  flowhost deadletter list
  flowhost deadletter list --flow orders -n 0 --json | jq -r .reason | sort | uniq -c`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usage(cmd, "--limit %d: an integer from 0 is expected; 0 is all dead letters", limit)
			}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				columns := render.DeadLetterColumns()
				more, err := remote.EachDeadLetter(ctx, client, flow, limit, func(page []api.DeadLetter) error {
					return render.List(a.Out, page, asJSON, columns, render.DeadLetterRow)
				})
				if err == nil && more && a.Out.Interactive {
					a.Say("older dead letters may exist: -n %d shows more", 5*limit)
				}
				return err
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&flow, "flow", "", "only those of the flow of this `NAME`")
	flags.IntVarP(&limit, "limit", "n", 20, "maximum `NUMBER` of dead letters, 0 for all")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line, for each dead letter")
	r.AddFlags(flags)
	cmd.RegisterFlagCompletionFunc("flow", r.Complete(remote.FlowNames))
	return cmd
}

func deadletterShowCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "show NUMBER",
		Short: "Show a dead letter with its headers and its body",
		Example: `  flowhost deadletter show 7
  flowhost deadletter show 7 --json | jq -r .body`,
		Args:              cli.Between(1, 1, "NUMBER"),
		ValidArgsFunction: r.Complete(remote.CompleteDeadLetters),
		RunE: func(cmd *cobra.Command, args []string) error {
			sequences, err := remote.DeadLetterSequences(cmd, args)
			if err != nil {
				return err
			}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				letter, err := client.DeadLetter(ctx, sequences[0])
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(letter)
				}
				a.Out.DescribeDeadLetter(&letter)
				return nil
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with all of the body")
	r.AddFlags(cmd.Flags())
	return cmd
}

// disposal is deadletter send and deadletter discard with their flags.
type disposal struct {
	remote.Host
	flow        string
	all, dryRun bool
	asJSON      bool

	nothing string                                                       // said after a dry run, of what was not done
	each    func(context.Context, *api.Client, uint64) (disposed, error) // does it with one
	done    string                                                       // what has happened to so many, with a noun before it
}

// disposed is what has happened to a dead letter.
type disposed struct {
	Sequence uint64       `json:"sequence"`
	Run      run.ID       `json:"run,omitempty"`
	Repeated bool         `json:"repeated,omitempty"`
	Error    *disposalErr `json:"error,omitempty"`
}

type disposalErr struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func deadletterSendCommand(a *cli.App) *cobra.Command {
	d := &disposal{Host: remote.Host{App: a}, nothing: "nothing was sent", done: "started a run", each: sendDeadLetter}
	cmd := cli.Exits(&cobra.Command{
		Use:   "send NUMBER... | --all",
		Short: "Send dead letters again, to start the runs that they could not",
		Long: `Sends dead letters to the flow and trigger that refused them, for instance once the
flow is mended, and prints the ids of the runs. A dead letter that has started its run
is removed; one that is refused again stays, with the reason on stderr. The same dead
letter starts one run, even if it is sent twice at the same time or within a day.

Several are sent in the order in which they came. Messages that could not end a wait
are not sent: 'flowhost signal' ends a wait.`,
		Example: `  flowhost deadletter send 7
  flowhost deadletter send --all --flow orders --dry-run
  flowhost deadletter send --all --flow orders`,
		ValidArgsFunction: d.Complete(remote.CompleteDeadLetters),
		RunE:              func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	d.addFlags(cmd)
	return cmd
}

func deadletterDiscardCommand(a *cli.App) *cobra.Command {
	d := &disposal{Host: remote.Host{App: a}, nothing: "nothing was discarded", done: "discarded", each: discardDeadLetter}
	cmd := cli.Exits(&cobra.Command{
		Use:   "discard NUMBER... | --all",
		Short: "Discard dead letters for good",
		Example: `  flowhost deadletter discard 7
  flowhost deadletter discard --all --flow orders --dry-run
  flowhost deadletter discard --all --flow orders`,
		ValidArgsFunction: d.Complete(remote.CompleteDeadLetters),
		RunE:              func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	d.addFlags(cmd)
	return cmd
}

func (d *disposal) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&d.all, "all", false, "all dead letters, or all of --flow")
	flags.StringVar(&d.flow, "flow", "", "with --all: only those of the flow of this `NAME`")
	flags.BoolVar(&d.dryRun, "dry-run", false, "only list the dead letters that are selected")
	flags.BoolVar(&d.asJSON, "json", false, "print one JSON object per line, for each dead letter")
	d.AddFlags(flags)
	cmd.RegisterFlagCompletionFunc("flow", d.Complete(remote.FlowNames))
}

func (d *disposal) run(cmd *cobra.Command, args []string) error {
	switch {
	case d.all && len(args) > 0:
		return cli.Usage(cmd, "--all and NUMBER exclude each other")
	case !d.all && d.flow != "":
		return cli.Usage(cmd, "--flow requires --all")
	case !d.all && len(args) == 0:
		return cli.Usage(cmd, "missing argument: NUMBER, or --all")
	}
	sequences, err := remote.DeadLetterSequences(cmd, args)
	if err != nil {
		return err
	}
	return d.Use(cmd, func(ctx context.Context, client *api.Client) error {
		if !d.all && !d.dryRun {
			return d.dispose(ctx, client, sequences)
		}
		letters, err := d.selected(ctx, client, sequences)
		if err != nil {
			return err
		}
		if d.dryRun {
			return d.preview(letters)
		}
		for _, l := range letters {
			sequences = append(sequences, l.Sequence)
		}
		return d.dispose(ctx, client, sequences)
	})
}

// selected are the dead letters of these numbers, or with --all those that it means,
// oldest first.
func (d *disposal) selected(ctx context.Context, client *api.Client, sequences []uint64) (letters []api.DeadLetter, err error) {
	if d.all {
		_, err = remote.EachDeadLetter(ctx, client, d.flow, 0, func(page []api.DeadLetter) error {
			letters = append(letters, page...)
			return nil
		})
		slices.Reverse(letters)
		return letters, err
	}
	for _, n := range sequences {
		letter, err := client.DeadLetter(ctx, n)
		if err != nil {
			return nil, err
		}
		letters = append(letters, letter)
	}
	return letters, nil
}

// preview lists what is selected.
func (d *disposal) preview(letters []api.DeadLetter) error {
	if err := render.List(d.App.Out, letters, d.asJSON, render.DeadLetterColumns(), render.DeadLetterRow); err != nil {
		return err
	}
	d.App.Say("%s; %s", render.Count(len(letters), "dead letter"), d.nothing)
	return nil
}

// dispose does with each what the command is for. What the host refuses stays, and does
// not keep it from the others.
func (d *disposal) dispose(ctx context.Context, client *api.Client, sequences []uint64) error {
	stay := 0
	for i, n := range sequences {
		result, err := d.each(ctx, client, n)
		var answer *api.AnswerError
		if err != nil && (!errors.As(err, &answer) || answer.Code == api.CodeDenied) {
			d.sum(i-stay, stay)
			return err
		}
		if err != nil {
			stay++
			result.Error = &disposalErr{answer.Code, answer.Message}
			d.App.Say("dead letter %d stays: %s", n, render.Printable(answer.Message))
		}
		if err := d.print(result); err != nil {
			return err
		}
	}
	d.sum(len(sequences)-stay, stay)
	if stay > 0 {
		return cli.Quiet(cli.ExitFailed)
	}
	return nil
}

func (d *disposal) print(result disposed) error {
	if d.asJSON {
		return render.EncodeLine(d.App.Out, result)
	}
	if result.Run == "" {
		return nil
	}
	if result.Repeated {
		d.App.Say("dead letter %d had started run %s already", result.Sequence, result.Run)
	}
	_, err := fmt.Fprintln(d.App.Out, result.Run)
	return err
}

// sum says what has happened to all.
func (d *disposal) sum(done, stay int) {
	text := render.Count(done, "dead letter") + " " + d.done
	if stay > 0 {
		text += fmt.Sprintf(", %d stay", stay)
	}
	d.App.Say("%s", text)
}

func sendDeadLetter(ctx context.Context, client *api.Client, n uint64) (disposed, error) {
	receipt, err := client.SendDeadLetter(ctx, n)
	if err == nil {
		if refused := remote.Refusal(receipt); refused != nil {
			err = &api.AnswerError{Code: "rejected", Message: refused.Error()}
		}
	}
	return disposed{Sequence: n, Run: receipt.Run, Repeated: receipt.Repeated}, err
}

func discardDeadLetter(ctx context.Context, client *api.Client, n uint64) (disposed, error) {
	return disposed{Sequence: n}, client.DiscardDeadLetter(ctx, n)
}
