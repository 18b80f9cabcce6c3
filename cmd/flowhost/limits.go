package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

func (a *app) limitsCommand() *cobra.Command {
	r := &remote{app: a}
	asJSON := false
	cmd := exits(&cobra.Command{
		Use:   "limits",
		Short: "List limits, and what waits for them",
		Long: `Lists the limits that the flows of a host share: how many attempts are under way, of
how many that may be, how many may start in what time, and how many tasks wait for
that.`,
		Example: `  flowhost limits
  flowhost limits --json | jq 'select(.waiting > 0)'`,
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				all, err := client.Limits(ctx)
				if err != nil {
					return err
				}
				return list(a, all, asJSON, limitColumns, -1, limitRow)
			})
		},
	}, exitInvalid, exitUnreachable, exitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object for each limit, on a line of its own")
	r.add(cmd.Flags())
	return cmd
}

var limitColumns = []string{"LIMIT", "IN USE", "RATE", "WAITING", "NOTE"}

func limitRow(l run.LimitStatus) []string {
	inUse, note := fmt.Sprint(l.InUse), ""
	if l.Concurrency > 0 {
		inUse += fmt.Sprintf(" of %d", l.Concurrency)
	}
	if !l.Next.IsZero() {
		note = "next start " + localTime(l.Next)
	}
	return []string{l.Limit, inUse, l.Rate, fmt.Sprint(l.Waiting), note}
}
