package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/host"
)

// service is run with its flags.
type service struct {
	*cli.App
	files      flowfiles.Flags
	settings   settings.Settings // from the flags; zero fields leave it to the settings file
	workers    int               // if the flag is given
	durability string
	logLevel   string
	config     string
}

func runCommand(a *cli.App) *cobra.Command {
	s := &service{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "run PATH...",
		Short: "Serve flows: schedules, messages and requests",
		Long: `Loads the flows of PATH, flow files and directories, and runs them when their schedules
are due, when messages arrive on NATS and on request. It embeds a NATS server unless
--nats is given. Accepted runs survive a restart with the same data directory or
server.

The first Ctrl-C (or SIGTERM) shuts down gracefully: running attempts finish, pending
work resumes at the next start. The second stops immediately; interrupted attempts run
again at the next start.

Settings are read from ` + settings.FileName + ` in the flows' directory; flags override them.
The host reloads flows and settings when their files change and on SIGHUP. New runs use
the new definitions, open runs keep theirs. Most settings apply at once; the log names
those that need a restart. If a file has errors, the host logs them and changes
nothing.

With --workers 0 the host accepts requests and starts no attempt. 'flowhost pause
--host' does the same to a running host, 'flowhost drain' shuts it down gracefully.`,
		Example: `  flowhost run flows/
  flowhost run flows/ --data /var/lib/flowhost --workers 16
  flowhost run flows/ --nats nats://nats.internal:4222 --creds flowhost.creds`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return s.run(cmd, paths) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&s.settings.Data, "data", "", "`DIRECTORY` of the journal and the modules; default: .flowhost in the flows' directory")
	flags.StringVar(&s.settings.NATSURL, "nats", "", "`URL` of an external NATS server with JetStream")
	flags.StringVar(&s.settings.NATSCreds, "creds", "", "`FILE` with credentials for it, of nsc, a seed, or a NATS context")
	flags.StringVar(&s.settings.NATSAppCreds, "app-creds", "", "`FILE` with credentials for the clients' account; default: engine and clients share one account")
	flags.StringVar(&s.settings.NATSListen, "nats-listen", "", "loopback `ADDRESS` of the embedded server; default: "+natsd.DefaultListen+", or a free port if that one is in use")
	flags.IntVar(&s.workers, "workers", 0, "maximum `NUMBER` of concurrent attempts, 0 for none; default: four times the number of CPUs")
	flags.StringVar(&s.durability, "durability", "", "`MODE` of the journal: strict, synced before it acknowledges (default); relaxed, synced every 100 ms; or memory, lost with the process")
	flags.StringVar(&s.logLevel, "log-level", "", "minimum `LEVEL` of the log: debug (each attempt), info (each run; default), warn or error")
	flags.StringVar(&s.config, "config", "", "settings `FILE`; default: "+settings.FileName+" in the flows' directory")
	flags.BoolVar(&s.settings.AcceptLoss, "accept-loss", false, "start even if the end of the journal is lost; relaxed durability implies it")
	flags.BoolVar(&s.settings.Unwatched, "no-watch", false, "reload changed files only on SIGHUP")
	s.files.AddFlags(flags)
	return cmd
}

func (s *service) run(cmd *cobra.Command, paths []string) error {
	merged, err := s.merge(cmd, paths[0])
	if err != nil {
		return settings.Show(s.App, err)
	}
	if os.Getenv("GOGC") == "" {
		defer serve.TuneCollector()()
	}
	serve.LimitMemory(merged.Memory)
	soft, hard, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	asked, stopReloads := serve.ListenReloads()
	defer stopReloads()
	level := new(slog.LevelVar)
	level.Set(merged.LogLevel)
	log := s.Log(level)
	lines := new(serve.GuestLines)
	outside, err := serve.NewOutside(merged, log)
	if err != nil {
		return err
	}
	defer outside.Close()
	h, err := serve.NewHost(soft, merged, outside, lines.Write, log)
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	options, err := s.files.Options(cmd, s.Environ, host.Catalog{Host: h, Defer: true}) // serve compiles while the flows are served
	if err != nil {
		return err
	}
	options.Opened = merged.Opened
	options.Ceilings, options.Operator = merged.Ceilings, merged.Operator
	set, err := flowfiles.Load(soft, s.App, paths, options)
	if err != nil {
		return err
	}
	return serve.Run(soft, hard, serve.Config{
		Settings: merged, Paths: paths, Host: h, Outside: outside, Flows: options, Set: set, Lines: lines, Reloads: asked, Out: s.Out, Log: log, Level: level,
		SettingsFile: settings.File(s.config, paths[0]),
		Reread:       func() (settings.Settings, error) { return s.merge(cmd, paths[0]) },
	})
}

// merge overrides the settings file with the flags.
func (s *service) merge(cmd *cobra.Command, path string) (settings.Settings, error) {
	merged, err := settings.Load(s.config, path)
	if err != nil {
		return settings.Settings{}, err
	}
	override(&merged.Data, s.settings.Data)
	override(&merged.NATSURL, s.settings.NATSURL)
	override(&merged.NATSCreds, s.settings.NATSCreds)
	override(&merged.NATSAppCreds, s.settings.NATSAppCreds)
	override(&merged.NATSListen, s.settings.NATSListen)
	if cmd.Flags().Changed("workers") {
		merged.Workers = &s.workers
	}
	override(&merged.AcceptLoss, s.settings.AcceptLoss)
	override(&merged.Unwatched, s.settings.Unwatched)
	if s.durability != "" {
		if merged.Durability, err = settings.ParseDurability(s.durability); err != nil {
			return settings.Settings{}, cli.Usage(cmd, "--durability: %w", err)
		}
	}
	if s.logLevel != "" {
		merged.LogLevel = settings.LevelOf(s.logLevel)
	}
	if err := s.check(cmd, &merged); err != nil {
		return settings.Settings{}, err
	}
	if merged.Data == "" {
		merged.Data = filepath.Join(settings.DirOf(path), ".flowhost")
	}
	if merged.Data, err = filepath.Abs(merged.Data); err != nil {
		return settings.Settings{}, cli.Exitf(cli.ExitInvalid, "--data: %w", err)
	}
	return merged, nil
}

// check rejects invalid flags and contradictory settings.
func (s *service) check(cmd *cobra.Command, merged *settings.Settings) error {
	external := merged.NATSURL != ""
	switch {
	case s.workers < 0 || s.workers > settings.MaxWorkers:
		return cli.Usage(cmd, "--workers %d: an integer from 0 to %d is expected", s.workers, settings.MaxWorkers)
	case !external && s.settings.NATSAppCreds != "":
		return cli.Usage(cmd, "--app-creds requires --nats: it is for an external server")
	case !external && s.settings.NATSCreds != "":
		return cli.Usage(cmd, "--creds requires --nats: it is for an external server")
	case external && s.settings.NATSListen != "":
		return cli.Usage(cmd, "--nats-listen and --nats exclude each other: it is for the embedded server")
	case external && merged.Durability == natsd.SyncMemory:
		return cli.Exitf(cli.ExitInvalid, "durability %q requires the embedded server: an external one stores its streams on disk", merged.Durability)
	case !external && merged.Streams.Replicas > 1:
		return cli.Exitf(cli.ExitInvalid, "settings: replicas = %d requires an external NATS cluster: set its url, too", merged.Streams.Replicas)
	}
	if err := checkListen(cmd, s.settings.NATSListen, merged.NATSListen); err != nil {
		return err
	}
	return settings.CheckLevel(cmd, "log-level", s.logLevel)
}

// checkListen rejects an address of the embedded server, from a flag or the settings.
func checkListen(cmd *cobra.Command, flag, merged string) error {
	if merged == "" {
		return nil
	}
	err := natsd.CheckListen(merged)
	switch {
	case err == nil:
		return nil
	case flag != "":
		return cli.Usage(cmd, "--nats-listen: %w", err)
	}
	return cli.Exitf(cli.ExitInvalid, "settings: %w", err)
}

func override[T comparable](to *T, with T) {
	var none T
	if with != none {
		*to = with
	}
}
