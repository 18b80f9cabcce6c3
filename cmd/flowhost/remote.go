package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// Environment variables that say where the host is.
const (
	envData  = "FLOWHOST_DATA"
	envURL   = "NATS_URL"
	envCreds = "NATS_CREDS"
)

// remote is a running host that a command works against, with the flags that say
// where it is.
type remote struct {
	*app
	url, creds, data string
}

func (r *remote) add(flags *pflag.FlagSet) {
	flags.StringVar(&r.data, "data", "", "data `FOLDER` of a host on this machine; default: $"+envData+", or .flowhost here, in flows/, or in a folder above")
	flags.StringVar(&r.url, "nats", "", "`URL` of the NATS server that the host uses; default: $"+envURL)
	flags.StringVar(&r.creds, "creds", "", "`FILE` with credentials for it; default: $"+envCreds)
}

// use connects to the host and gives the connection to a command. The context ends
// with the first signal; what the host goes on doing then is left to it.
func (r *remote) use(cmd *cobra.Command, do func(context.Context, *api.Client) error) error {
	at, err := r.locate(cmd)
	if err != nil {
		return err
	}
	soft, _, stopListening := listenSignals(cmd.Context())
	defer stopListening()
	client, err := api.Dial(soft, at)
	if err != nil {
		if at.Context != "" && at.URL == "" {
			err = fmt.Errorf("%w\nthe address is that of %s: 'flowhost run' keeps it up to date while it runs", err, relative(at.Context))
		}
		return r.explain(soft, err)
	}
	defer client.Close()
	return r.explain(soft, do(soft, client))
}

// explain gives an error of a host its exit code.
func (r *remote) explain(ctx context.Context, err error) error {
	var (
		exit        *exitError
		unreachable *api.UnreachableError
		answer      *api.AnswerError
	)
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &unreachable):
		return &exitError{exitUnreachable, err}
	case errors.As(err, &answer):
		return &exitError{codeOfAnswer(answer.Code), err}
	}
	return err
}

func codeOfAnswer(code string) int {
	switch code {
	case api.CodeUnavailable, api.CodeBusy:
		return exitUnreachable
	case api.CodeTimeout:
		return exitTimeout
	case api.CodeFinished, api.CodeUnfinished, api.CodeNotWaiting, api.CodeWaitKind, api.CodeSucceeded, api.CodeTooLarge,
		api.CodeDisabled, api.CodePaused, api.CodeNotPaused, api.CodeOverlap:
		return exitFailed
	}
	return exitInvalid // something was asked for that is not there, or asked wrongly
}

// locate finds the host: what a flag says, $FLOWHOST_DATA, a data folder nearby,
// $NATS_URL. What lies nearby goes first because it is more particular: the URL may
// have been set for other programs.
func (r *remote) locate(cmd *cobra.Command) (api.DialConfig, error) {
	switch {
	case r.url != "" && r.data != "":
		return api.DialConfig{}, usage(cmd, "--data names a host on this machine and --nats a server: give one of them")
	case r.url != "":
		return api.DialConfig{URL: r.url, Creds: r.creds}, nil
	case r.creds != "":
		return api.DialConfig{}, usage(cmd, "--creds are credentials for the server that --nats names")
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
	return api.DialConfig{}, exitf(exitUnreachable, `no host is known here: there is no data folder .flowhost of one in %s,
in its folder flows, or in a folder above, and neither %s nor %s is set
--data FOLDER names the data folder of a host on this machine, --nats URL the server of another one`, here, envData, envURL)
}

func (r *remote) getenv(name string) string {
	for _, entry := range r.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// contextIn is the file that a host leaves in its data folder for its operator: clients
// that use up what they may leave a reserve to it.
func contextIn(folder, from string) (api.DialConfig, error) {
	file := filepath.Join(folder, natsd.OperatorContext)
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return api.DialConfig{}, exitf(exitUnreachable, "%s: %s is not a file, and no host has made it", from, file) // reading a pipe would wait
	}
	if err != nil {
		return api.DialConfig{}, exitf(exitUnreachable, "%s: no host has run with the data folder %s, or it uses an external server, which --nats names (%w)", from, folder, err)
	}
	return api.DialConfig{Context: file}, nil
}

// nearby looks for a host of this folder, of the flows in it, or of a folder above.
// The settings file is read where the host would read it, but not further up.
func (r *remote) nearby() (at api.DialConfig, here string, err error) {
	here, err = os.Getwd()
	if err != nil {
		return at, here, exitf(exitFailed, "the current folder: %w", err)
	}
	for _, flows := range []string{here, filepath.Join(here, "flows")} {
		s, err := r.readSettings("", filepath.Join(flows, settingsName))
		switch {
		case err != nil:
			return at, here, err
		case s.natsURL != "":
			return api.DialConfig{URL: s.natsURL, Creds: s.natsCreds}, here, nil
		case s.data != "":
			at, err := contextIn(s.data, relative(filepath.Join(flows, settingsName)))
			return at, here, err
		}
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		for _, data := range []string{filepath.Join(folder, ".flowhost"), filepath.Join(folder, "flows", ".flowhost")} {
			if file := filepath.Join(data, natsd.OperatorContext); private(file) {
				return api.DialConfig{Context: file}, here, nil
			}
		}
		if folder == filepath.Dir(folder) {
			return at, here, nil
		}
	}
}

// private reports whether a file is there that nobody else could have put there for
// us to find: a host lets only its own user read it.
func private(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0
}

// Times of following a run.
const (
	pollTime  = 30 * time.Second       // that the host waits for something to happen
	awayTime  = time.Minute            // that a host may be away
	againTime = 500 * time.Millisecond // until it is asked again
)

// persistently repeats what only asks, while the host is away: one that starts
// again goes on with its runs.
func (r *remote) persistently(ctx context.Context, ask func() error) error {
	var since time.Time
	for {
		err := ask()
		if !away(err) || ctx.Err() != nil {
			return err
		}
		if since.IsZero() {
			since = time.Now()
			r.say("waiting for the host to come back: %s", err)
		}
		if time.Since(since) > awayTime {
			return err
		}
		if err := sleep(ctx, againTime); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func away(err error) bool {
	var (
		unreachable *api.UnreachableError
		answer      *api.AnswerError
	)
	return errors.As(err, &unreachable) || errors.As(err, &answer) && answer.Code == api.CodeUnavailable
}

// flowNames are the names of the flows that the host serves, none when it does not
// tell.
func flowNames(ctx context.Context, client *api.Client) []string {
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

// unknownFlow says that there is no such flow, and which there are.
func unknownFlow(ctx context.Context, client *api.Client, flow string) error {
	return exitf(exitInvalid, "the host serves no flow %q%s", flow, suggest(flow, flowNames(ctx, client)))
}

// complete gives words for the shell to complete: a host that is not there has
// none.
func (r *remote) complete(words func(context.Context, *api.Client) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
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
		return words(ctx, client), cobra.ShellCompDirectiveNoFileComp
	}
}

// latestRuns completes the ids of the latest runs, with what tells them apart.
func latestRuns(ctx context.Context, client *api.Client) []string {
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
