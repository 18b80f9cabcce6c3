package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/standard"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// pluginCall is plugin call with its flags.
type pluginCall struct {
	*cli.App
	config  string
	grant   string
	timeout time.Duration
	asJSON  bool
}

func pluginCallCommand(a *cli.App) *cobra.Command {
	c := &pluginCall{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "call MODULE [FUNCTION] [JSON|@FILE|-]",
		Short: "Call a function of a plugin once",
		Long: `Calls a function of a plugin's module with an input (default: null) and prints
its output. The guest's log goes to stderr. FUNCTION is optional for a module with one
function and for commands that read stdin. Nothing is granted to the guest unless
--grant states it, in the words of a flow's grant block; directories are below the
current one. Connections and secrets need a declaration: write a flow beside it, and
use "flowhost exec".`,
		Example: `  flowhost plugin call greet.wasm greet '{"name":"world"}'
  flowhost plugin call pricing.wasm price @order.json --config '{"currency":"EUR"}'
  flowhost plugin call wc-cmd.wasm - < input.json
  flowhost plugin call std/jq '{"query":".a + 1","data":{"a":1}}'
  flowhost plugin call count.wasm '"/data/words.txt"' --grant 'files = { "./data" = "ro" }'`,
		Args: cli.Between(1, 3, "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.call(cmd, args) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&c.config, "config", "", "the plugin's configuration: `JSON`, @FILE, or - for stdin")
	flags.StringVar(&c.grant, "grant", "", "what the guest may use: the `ARGUMENTS` of a grant block, or the same as JSON")
	flags.DurationVar(&c.timeout, "timeout", 0, "time out the call after this `DURATION`; default: 5m")
	flags.BoolVar(&c.asJSON, "json", false, "print outcome, output, error and log as JSON")
	return cmd
}

func (c *pluginCall) call(cmd *cobra.Command, args []string) error {
	if c.timeout < 0 {
		return cli.Usage(cmd, "--timeout %s: a positive duration is expected", c.timeout)
	}
	soft, hard, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	log := c.Log(slog.LevelWarn)
	outside, err := serve.NewOutside(settings.Settings{}, log)
	if err != nil {
		return err
	}
	defer outside.Close()
	h, err := serve.NewHost(soft, settings.Settings{}, outside, nil, log)
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	call, err := c.prepare(soft, h, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(hard)
	defer cancel(nil)
	defer context.AfterFunc(soft, func() { cancel(run.ErrCanceled) })()
	result, err := h.Invoke(ctx, call)
	if err != nil {
		return err
	}
	return c.show(result, soft.Err() != nil)
}

// prepare returns the call that the arguments describe.
func (c *pluginCall) prepare(ctx context.Context, h *host.Host, args []string) (run.Call, error) {
	signature, part, err := standard.Signature(ctx, h, args[0])
	if ctx.Err() != nil {
		return run.Call{}, context.Cause(ctx)
	}
	if err != nil {
		return run.Call{}, cli.WithCode(cli.ExitInvalid, err)
	}
	function, input := splitCall(signature, args[1:])
	if part != "" {
		function = part + "." + cmp.Or(function, signature.Default())
	}
	now := time.Now().UTC()
	call := run.Call{
		Run: run.NewID(now), Flow: "call", Task: "call", Attempt: 1, Scheduled: now,
		Module: signature.Digest, Function: function, Timeout: c.timeout,
	}
	if call.Input, err = c.ReadJSON(input); err == nil && c.config != "" {
		call.Config, err = c.ReadJSON(c.config)
	}
	if err == nil {
		call.Grants, err = c.granted(ctx)
	}
	return call, err
}

// granted is what --grant states.
func (c *pluginCall) granted(ctx context.Context) (run.Grants, error) {
	if c.grant == "" {
		return run.Grants{}, nil
	}
	grants, set, diags := flows.ParseGrant(ctx, c.grant, ".", "--grant")
	c.ShowDiagnostics(set.Files(), diags)
	if diags.HasErrors() {
		return run.Grants{}, cli.Quiet(cli.ExitInvalid)
	}
	return grants, nil
}

// splitCall separates function and input, both of which are optional.
func splitCall(signature run.Signature, args []string) (function, input string) {
	switch len(args) {
	case 0:
		return "", "null"
	case 2:
		return args[0], args[1]
	}
	arg := args[0]
	named := slices.ContainsFunc(signature.Functions, func(f run.FunctionSignature) bool { return f.Name == arg })
	if !named && (arg == "-" || strings.HasPrefix(arg, "@") || json.Valid([]byte(arg))) {
		return "", arg
	}
	return arg, "null"
}

func (c *pluginCall) show(result run.Result, interrupted bool) error {
	var err error
	if c.asJSON {
		err = c.PrintJSON(result)
	} else {
		for _, l := range result.Log.Lines {
			c.Say("%s", c.Errout.LogLine(l))
		}
		if result.Log.Dropped > 0 {
			c.Say("(%s left out)", render.Count(result.Log.Dropped, "line"))
		}
		if result.Failure == nil {
			err = c.PrintJSON(result.Output)
		}
	}
	switch {
	case err != nil || result.Failure == nil:
		return err
	case interrupted:
		return cli.Quiet(cli.ExitInterrupted)
	case c.asJSON:
		return cli.Quiet(cli.ExitFailed)
	}
	return cli.Exitf(cli.ExitFailed, "the call %s: %s", render.OutcomeVerb(result.Outcome), render.Printable(result.Failure.Error()))
}
