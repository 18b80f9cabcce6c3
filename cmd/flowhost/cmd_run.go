package main

import (
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
)

// gcPercent is how much the heap grows between two collections where GOGC does
// not say. What lives is small, some 10 to 100 MB, and what a task leaves behind is
// much: with Go's own 100 collections take a fifth of the processor under load, with more
// the heap grows to gigabytes.
const gcPercent = 200

// service is run with its flags.
type service struct {
	*cli.App
	files      flowfiles.Flags
	settings   settings.Settings // from the flags; zero fields leave it to the settings file
	durability string
	logLevel   string
	config     string
}

func runCommand(a *cli.App) *cobra.Command {
	s := &service{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "run PATH...",
		Short: "Serve flows: schedules, messages and requests",
		Long: `Loads the flows of PATH, flow files and folders, and runs them when their
schedules are due, when messages arrive on NATS and when they are asked for. With
an embedded NATS server unless --nats is given. What was accepted is finished
after a restart with the same data folder or server.

The first Ctrl-C (or SIGTERM) stops softly: nothing new starts, running attempts
end. The second stops at once; what was running is run again at the next start.

Flows are loaded anew when their files change, and on SIGHUP: for new runs, while
those in progress keep theirs. Files with mistakes change nothing and are reported.

Settings are read from ` + settings.FileName + ` beside the flows; flags win over it.`,
		Example: `  flowhost run flows/
  flowhost run flows/ --data /var/lib/flowhost --workers 16
  flowhost run flows/ --nats nats://nats.internal:4222 --creds flowhost.creds`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return s.run(cmd, paths) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&s.settings.Data, "data", "", "`FOLDER` of the journal and the modules; default: .flowhost beside the flows")
	flags.StringVar(&s.settings.NATSURL, "nats", "", "`URL` of an external NATS server with JetStream")
	flags.StringVar(&s.settings.NATSCreds, "creds", "", "`FILE` with credentials for it")
	flags.StringVar(&s.settings.NATSAppCreds, "app-creds", "", "`FILE` with credentials for the account of its clients; default: one account serves the engine and them")
	flags.StringVar(&s.settings.NATSListen, "nats-listen", "", "loopback `ADDRESS` of the embedded server; default: "+bus.DefaultListen+", or a free port when that is taken")
	flags.IntVar(&s.settings.Workers, "workers", 0, "`NUMBER` of attempts that run at a time; default: four times the number of CPUs")
	flags.StringVar(&s.durability, "durability", "", "`MODE` of the journal: strict, synced before it is acknowledged (default); relaxed, within 100 ms; or memory, gone with the process")
	flags.StringVar(&s.logLevel, "log-level", "", "least severe `LEVEL` of the log: debug (each attempt), info (each run; default), warn or error")
	flags.StringVar(&s.config, "config", "", "settings `FILE`; default: "+settings.FileName+" beside the flows")
	flags.BoolVar(&s.settings.AcceptLoss, "accept-loss", false, "go on when the journal has lost its end; relaxed durability implies it")
	flags.BoolVar(&s.settings.Unwatched, "no-watch", false, "load changed files on SIGHUP only")
	s.files.AddFlags(flags)
	return cmd
}

func (s *service) run(cmd *cobra.Command, paths []string) error {
	merged, err := s.merge(cmd, paths[0])
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	serve.LimitMemory()
	soft, hard, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	asked, stopReloads := serve.ListenReloads()
	defer stopReloads()
	log := s.Log(merged.LogLevel)
	lines := new(serve.GuestLines)
	h, err := serve.NewHost(soft, merged, lines.Write, log)
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	options, err := s.files.Options(cmd, s.Environ, h)
	if err != nil {
		return err
	}
	options.Opened = merged.Opened
	options.Ceilings = merged.Ceilings
	set, err := flowfiles.Load(soft, s.App, paths, options)
	if err != nil {
		return err
	}
	return serve.Run(soft, hard, serve.Config{
		Settings: merged, Paths: paths, Host: h, Flows: options, Set: set, Lines: lines, Reloads: asked, Out: s.Out, Log: log,
	})
}

// merge puts the flags above the settings file.
func (s *service) merge(cmd *cobra.Command, path string) (settings.Settings, error) {
	merged, err := settings.Read(s.App, s.config, path)
	if err != nil {
		return settings.Settings{}, err
	}
	override(&merged.Data, s.settings.Data)
	override(&merged.NATSURL, s.settings.NATSURL)
	override(&merged.NATSCreds, s.settings.NATSCreds)
	override(&merged.NATSAppCreds, s.settings.NATSAppCreds)
	override(&merged.NATSListen, s.settings.NATSListen)
	override(&merged.Workers, s.settings.Workers)
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
		merged.Data = filepath.Join(settings.FolderOf(path), ".flowhost")
	}
	if merged.Data, err = filepath.Abs(merged.Data); err != nil {
		return settings.Settings{}, cli.Exitf(cli.ExitInvalid, "--data: %w", err)
	}
	return merged, nil
}

// check refuses flags that cannot be, and settings that do not go together.
func (s *service) check(cmd *cobra.Command, merged *settings.Settings) error {
	external := merged.NATSURL != ""
	switch {
	case s.settings.Workers < 0 || s.settings.Workers > settings.MaxWorkers:
		return cli.Usage(cmd, "--workers %d: a number from 1 to %d is expected", s.settings.Workers, settings.MaxWorkers)
	case !external && s.settings.NATSAppCreds != "":
		return cli.Usage(cmd, "--app-creds is for an external server: give --nats, too")
	case external && s.settings.NATSListen != "":
		return cli.Usage(cmd, "--nats-listen is for the embedded server, and --nats asks for another one")
	case external && merged.Durability == bus.SyncMemory:
		return cli.Exitf(cli.ExitInvalid, "durability %q is for the embedded server: an external one keeps what it is given", merged.Durability)
	case !external && merged.Streams.Replicas > 1:
		return cli.Exitf(cli.ExitInvalid, "settings: replicas = %d is for an external NATS cluster: give its url, too", merged.Streams.Replicas)
	}
	return settings.CheckLevel(cmd, "log-level", s.logLevel)
}

func override[T comparable](to *T, with T) {
	var none T
	if with != none {
		*to = with
	}
}
