package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/internal/trials"
	"github.com/flowhost/flowhost/run"
)

// past gets the latest runs of the flow that have ended from a host.
func (t *flowTrial) past(cmd *cobra.Command, flow string) (*trials.History, error) {
	var records []*run.Record
	err := t.use(cmd, func(ctx context.Context, client *api.Client) error {
		query := run.Query{Flow: flow, States: []run.State{run.Succeeded, run.Failed}}
		for len(records) < t.last {
			query.Limit = min(t.last-len(records), run.MaxPage)
			page, err := client.List(ctx, query)
			if err != nil {
				return err
			}
			for _, summary := range page.Runs {
				record, err := client.Get(ctx, summary.Run)
				if err != nil {
					return err
				}
				records = append(records, record)
			}
			if query.Before = page.Next; query.Before == "" {
				break
			}
		}
		if len(records) == 0 {
			return exitf(exitInvalid, "the host has no run of flow %s that has ended: leave out --from-history", flow)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return trials.NewHistory(records), nil
}

// sampled makes outputs of what the functions of plugins state of them. The host
// that reads the modules is made when it is needed.
type sampled struct {
	*app
	ctx    context.Context
	host   *host.Host
	broken bool
}

func (s *sampled) close() {
	if s.host != nil {
		closeHost(s.host)
	}
}

// of is nil when nothing is known: a plugin need not be built.
func (s *sampled) of(t *flows.Task) json.RawMessage {
	if s.host == nil && !s.broken {
		var err error
		s.host, err = newHost(s.ctx, settings{}, nil, s.log(slog.LevelError))
		s.broken = err != nil
	}
	if s.broken || t.Plugin.Source == "" {
		return nil
	}
	file := filepath.FromSlash(t.Plugin.Source)
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(t.Range.Filename), file)
	}
	signature, err := s.host.Signature(s.ctx, file)
	if err != nil {
		return nil
	}
	function := t.Function
	if function == "" {
		function = signature.Default()
	}
	for _, f := range signature.Functions {
		if f.Name == function && len(f.Output) > 0 {
			return trials.Sample(f.Output)
		}
	}
	return nil
}
