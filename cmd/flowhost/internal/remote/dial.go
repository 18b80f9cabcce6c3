package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/run"
)

// Environment variables that locate the host.
const (
	envData  = "FLOWHOST_DATA"
	envURL   = "NATS_URL"
	envCreds = "NATS_CREDS"
)

// Host is the running host that a command uses, with the flags that locate it.
type Host struct {
	App              *cli.App
	url, creds, data string
}

// AddFlags adds the flags that locate the host.
func (r *Host) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.data, "data", "", "data `DIRECTORY` of a host on this machine; default: $"+envData+", or .flowhost in the current directory, in flows/, or in a parent directory")
	flags.StringVar(&r.url, "nats", "", "`URL` of the NATS server that the host uses; default: $"+envURL)
	flags.StringVar(&r.creds, "creds", "", "`FILE` with credentials for it, of nsc, a seed, or a NATS context, which may have the URL, too; default: $"+envCreds)
}

// Use connects to the host and passes the connection to a command. The context ends
// with the first signal; the host continues what it does.
func (r *Host) Use(cmd *cobra.Command, do func(context.Context, *api.Client) error) error {
	at, err := r.locate(cmd)
	if err != nil {
		return err
	}
	soft, _, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	client, err := api.Dial(soft, at)
	if errors.Is(err, bus.ErrNoURL) && at.Context == r.creds {
		return cli.Usage(cmd, "--creds requires --nats, unless it is a NATS context with a url: %w", err)
	}
	if err != nil {
		if at.Context != "" && at.Context != r.creds {
			err = fmt.Errorf("%w\nthe address comes from %s, which a running 'flowhost run' keeps up to date", err, cli.Relative(at.Context))
		}
		return r.explain(soft, err)
	}
	defer client.Close()
	return r.explain(soft, do(soft, client))
}

// explain adds the exit code to an error of a host.
func (r *Host) explain(ctx context.Context, err error) error {
	var (
		exit        *cli.ExitError
		unreachable *api.UnreachableError
		answer      *api.AnswerError
	)
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &unreachable):
		return cli.WithCode(cli.ExitUnreachable, err)
	case errors.As(err, &answer):
		return cli.WithCode(codeOfAnswer(answer.Code), err)
	}
	return err
}

func codeOfAnswer(code string) int {
	switch code {
	case api.CodeUnavailable, api.CodeBusy:
		return cli.ExitUnreachable
	case api.CodeTimeout:
		return cli.ExitTimeout
	case api.CodeFinished, api.CodeUnfinished, api.CodeNotWaiting, api.CodeWaitKind, api.CodeSucceeded, api.CodeTooLarge,
		api.CodeDisabled, api.CodePaused, api.CodeNotPaused, api.CodeOverlap, api.CodeUnknownKey, api.CodeConflict, api.CodeFull:
		return cli.ExitFailed
	}
	return cli.ExitInvalid // an unknown name or an invalid request
}

// locate finds the host: by a flag, $FLOWHOST_DATA, a data directory nearby, or
// $NATS_URL. A directory nearby takes precedence because it is more specific: the URL
// may have been set for other programs.
func (r *Host) locate(cmd *cobra.Command) (api.DialConfig, error) {
	switch {
	case r.url != "" && r.data != "":
		return api.DialConfig{}, cli.Usage(cmd, "--data and --nats exclude each other")
	case r.url != "":
		return api.DialConfig{URL: r.url, Creds: r.creds}, nil
	case r.creds != "" && r.data != "":
		return api.DialConfig{}, cli.Usage(cmd, "--data and --creds exclude each other: the data directory has credentials")
	case r.creds != "":
		return api.DialConfig{Context: r.creds}, nil
	case r.data != "":
		return contextIn(r.data, "--data")
	case r.getenv(envData) != "":
		return contextIn(r.getenv(envData), envData)
	}
	at, here, err := r.nearby()
	switch {
	case err != nil:
		return api.DialConfig{}, err
	case at != (api.DialConfig{}):
		return at, nil
	case r.getenv(envURL) != "":
		return api.DialConfig{URL: r.getenv(envURL), Creds: r.getenv(envCreds)}, nil
	}
	return api.DialConfig{}, cli.Exitf(cli.ExitUnreachable, `no host found: there is no data directory .flowhost in %s,
in its subdirectory flows, or in a parent directory, and neither %s nor %s is set;
pass --data DIRECTORY for a host on this machine, or --nats URL for another one`, here, envData, envURL)
}

func (r *Host) getenv(name string) string {
	for _, entry := range r.App.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// contextIn is the file in a data directory that a host writes for its operator, whose
// quota is separate from that of clients.
func contextIn(dir, from string) (api.DialConfig, error) {
	file := filepath.Join(dir, natsd.OperatorContext)
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return api.DialConfig{}, cli.Exitf(cli.ExitUnreachable, "%s: %s is not a regular file, so no host has written it", from, file) // reading a pipe would wait
	}
	if of, fault := os.Stat(dir); fault == nil && !of.IsDir() {
		return api.DialConfig{}, cli.Exitf(cli.ExitInvalid, "%s: %s is not a directory", from, dir)
	}
	if err != nil {
		return api.DialConfig{}, cli.Exitf(cli.ExitUnreachable, "%s: no host has run with the data directory %s, or it uses an external server: pass --nats (%w)", from, dir, err)
	}
	return api.DialConfig{Context: file}, nil
}

// nearby looks for a host of this directory, of the flows in it, or of a parent
// directory. It reads the settings file where the host would, but not further up. Errors
// in it matter only if no host is found: one that runs keeps its settings then, and is
// still to be controlled.
func (r *Host) nearby() (at api.DialConfig, here string, err error) {
	here, err = os.Getwd()
	if err != nil {
		return at, here, cli.Exitf(cli.ExitFailed, "the current directory: %w", err)
	}
	var broken error
	for _, flows := range []string{here, filepath.Join(here, "flows")} {
		s, err := settings.Load("", filepath.Join(flows, settings.FileName))
		if invalid := (*settings.InvalidError)(nil); err != nil && !errors.As(err, &invalid) {
			return at, here, err
		}
		broken = cmp.Or(broken, err)
		switch {
		case s.NATSURL != "":
			return api.DialConfig{URL: s.NATSURL, Creds: s.NATSCreds}, here, nil
		case s.Data != "":
			at, err := contextIn(s.Data, cli.Relative(filepath.Join(flows, settings.FileName)))
			return at, here, err
		}
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		for _, data := range []string{filepath.Join(dir, ".flowhost"), filepath.Join(dir, "flows", ".flowhost")} {
			if file := filepath.Join(data, natsd.OperatorContext); private(file) {
				return api.DialConfig{Context: file}, here, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return at, here, settings.Show(r.App, broken)
		}
	}
}

// private reports whether a file exists that only its owner can read, as a host writes
// it: nobody else could have placed it for us to find.
func private(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0
}

// Times of following a run.
const (
	PollTime  = 30 * time.Second       // how long the host waits for a change before it replies
	quietTime = 3 * time.Second        // how long nothing happens to a run before the reason is asked for
	awayTime  = time.Minute            // how long a host may be unreachable
	againTime = 500 * time.Millisecond // between two retries
)

// Persistently retries a read-only request while the host is unreachable: a host that
// restarts resumes its runs.
func (r *Host) Persistently(ctx context.Context, ask func() error) error {
	var since time.Time
	for {
		err := ask()
		if !away(err) || ctx.Err() != nil {
			return err
		}
		if since.IsZero() {
			since = time.Now()
			r.App.Say("waiting for the host to return: %s", err)
		}
		if time.Since(since) > awayTime {
			return err
		}
		if err := Sleep(ctx, againTime); err != nil {
			return err
		}
	}
}

// Sleep waits for a duration, or returns the cause of the end of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func away(err error) bool {
	var unreachable *api.UnreachableError
	return errors.As(err, &unreachable) || IsStopping(err)
}

// FlowNames are the names of the flows that the host serves, none if it does not
// answer.
func FlowNames(ctx context.Context, client *api.Client) []string {
	flows, err := client.Flows(ctx, "")
	if err != nil {
		return nil
	}
	names := make([]string, len(flows))
	for i, f := range flows {
		names[i] = f.Flow
	}
	return names
}

// UnknownFlow is the error for a flow that the host does not serve.
func UnknownFlow(ctx context.Context, client *api.Client, flow string) error {
	return cli.Exitf(cli.ExitInvalid, "the host serves no flow %q%s", flow, cli.Suggest(flow, FlowNames(ctx, client)))
}

// Complete completes the first argument in the shell, with nothing if no host answers.
func (r *Host) Complete(words func(context.Context, *api.Client) []string) cobra.CompletionFunc {
	return r.CompleteEach(func(ctx context.Context, client *api.Client, _ []string) []string { return words(ctx, client) })
}

// CompleteEach completes each argument by a function of its own, which knows those before it.
func (r *Host) CompleteEach(words ...func(ctx context.Context, client *api.Client, before []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
		defer cancel()
		at, err := r.locate(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, err := api.Dial(ctx, at)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		return words[len(args)](ctx, client, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteRuns completes the ids of the latest runs, with their flow and state.
func CompleteRuns(ctx context.Context, client *api.Client) []string {
	page, err := client.List(ctx, run.Query{Limit: 20})
	if err != nil {
		return nil
	}
	words := []string{latest}
	for _, s := range page.Runs {
		words = append(words, cobra.CompletionWithDesc(string(s.Run), s.Flow+" "+string(s.State)))
	}
	return words
}
