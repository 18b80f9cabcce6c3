package simulate

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/internal/flowsim"
	"github.com/flowhost/flowhost/run"
)

// past fetches the latest finished runs of the flow from a host.
func (t *flowTrial) past(cmd *cobra.Command, flow string) (*flowsim.History, error) {
	var records []*run.Record
	err := t.Use(cmd, func(ctx context.Context, client *api.Client) error {
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
			return cli.Exitf(cli.ExitInvalid, "the host has no finished run of flow %s: omit --from-history", flow)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return flowsim.NewHistory(records), nil
}

// sampled generates outputs from the schemas of functions. It creates the host that
// reads the modules on first use.
type sampled struct {
	*cli.App
	ctx    context.Context
	host   *host.Host
	broken bool
}

func (s *sampled) close() {
	if s.host != nil {
		serve.CloseHost(s.host)
	}
}

// of returns nil if nothing is known: a plugin need not be built.
func (s *sampled) of(t *flows.Task) json.RawMessage {
	if s.host == nil && !s.broken {
		var err error
		s.host, err = serve.NewHost(s.ctx, settings.Settings{}, nil, nil, s.Log(slog.LevelError))
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
			return flowsim.Sample(f.Output)
		}
	}
	return nil
}
