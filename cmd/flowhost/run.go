package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/host"
)

// gcPercent is how much the heap grows between two collections where GOGC does
// not say. What lives is small, some 10 to 100 MB, and what a task leaves behind is
// much: with Go's own 100 collections take a fifth of the processor under load, with more
// the heap grows to gigabytes.
const gcPercent = 200

// service is run with its flags.
type service struct {
	*app
	files      flowFlags
	settings   settings // from the flags; zero fields leave it to the settings file
	durability string
	logLevel   string
	config     string
}

func (a *app) runCommand() *cobra.Command {
	s := &service{app: a}
	cmd := exits(&cobra.Command{
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

Settings are read from ` + settingsName + ` beside the flows; flags win over it.`,
		Example: `  flowhost run flows/
  flowhost run flows/ --data /var/lib/flowhost --workers 16
  flowhost run flows/ --nats nats://nats.internal:4222 --creds flowhost.creds`,
		Args: atLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return s.serve(cmd, paths) },
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&s.settings.data, "data", "", "`FOLDER` of the journal and the modules; default: .flowhost beside the flows")
	flags.StringVar(&s.settings.natsURL, "nats", "", "`URL` of an external NATS server with JetStream")
	flags.StringVar(&s.settings.natsCreds, "creds", "", "`FILE` with credentials for it")
	flags.StringVar(&s.settings.natsAppCreds, "app-creds", "", "`FILE` with credentials for the account of its clients; default: one account serves the engine and them")
	flags.StringVar(&s.settings.natsListen, "nats-listen", "", "loopback `ADDRESS` of the embedded server; default: "+natsd.DefaultListen+", or a free port when that is taken")
	flags.IntVar(&s.settings.workers, "workers", 0, "`NUMBER` of attempts that run at a time; default: four times the number of CPUs")
	flags.StringVar(&s.durability, "durability", "", "`MODE` of the journal: strict, synced before it is acknowledged (default); relaxed, within 100 ms; or memory, gone with the process")
	flags.StringVar(&s.logLevel, "log-level", "", "least severe `LEVEL` of the log: debug (each attempt), info (each run; default), warn or error")
	flags.StringVar(&s.config, "config", "", "settings `FILE`; default: "+settingsName+" beside the flows")
	flags.BoolVar(&s.settings.acceptLoss, "accept-loss", false, "go on when the journal has lost its end; relaxed durability implies it")
	flags.BoolVar(&s.settings.unwatched, "no-watch", false, "load changed files on SIGHUP only")
	s.files.add(flags)
	return cmd
}

func (s *service) serve(cmd *cobra.Command, paths []string) error {
	merged, err := s.merge(cmd, paths[0])
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	limitMemory()
	soft, hard, stopListening := listenSignals(cmd.Context())
	defer stopListening()
	asked, stopReloads := listenReloads()
	defer stopReloads()
	log := s.log(merged.logLevel)
	lines := new(guestLines)
	h, err := newHost(soft, merged, lines.write, log)
	if err != nil {
		return err
	}
	defer closeHost(h)
	options, err := s.files.options(cmd, s.environ, h)
	if err != nil {
		return err
	}
	options.Opened = merged.opened
	options.Ceilings = merged.ceilings
	set, err := s.load(soft, paths, options)
	if err != nil {
		return err
	}
	l, err := openLink(soft, merged, true, set, log)
	if err != nil {
		return err
	}
	lines.logs.Store(l.logs)
	n, err := newNode(soft, nodeConfig{
		settings: merged, host: h, link: l, flows: options, limits: set.Limits, invoker: logGuests(log), log: log,
	})
	if err != nil {
		return errors.Join(err, l.close())
	}
	n.start(hard)
	err = s.intake(soft, n, h, &reloader{
		paths: paths, flows: options, leave: []string{merged.data, host.CachePath(merged.cache)}, watch: !merged.unwatched, asked: asked, log: log,
	}, set, log)
	fault := n.stop(hard)
	return cmp.Or(fault, err, n.unkept, l.close())
}

// merge puts the flags above the settings file.
func (s *service) merge(cmd *cobra.Command, path string) (settings, error) {
	merged, err := s.readSettings(s.config, path)
	if err != nil {
		return settings{}, err
	}
	override(&merged.data, s.settings.data)
	override(&merged.natsURL, s.settings.natsURL)
	override(&merged.natsCreds, s.settings.natsCreds)
	override(&merged.natsAppCreds, s.settings.natsAppCreds)
	override(&merged.natsListen, s.settings.natsListen)
	override(&merged.workers, s.settings.workers)
	override(&merged.acceptLoss, s.settings.acceptLoss)
	override(&merged.unwatched, s.settings.unwatched)
	if s.durability != "" {
		if merged.durability, err = parseDurability(s.durability); err != nil {
			return settings{}, usage(cmd, "--durability: %w", err)
		}
	}
	if s.logLevel != "" {
		merged.logLevel = levelOf(s.logLevel)
	}
	if err := s.check(cmd, &merged); err != nil {
		return settings{}, err
	}
	if merged.data == "" {
		merged.data = filepath.Join(folderOf(path), ".flowhost")
	}
	if merged.data, err = filepath.Abs(merged.data); err != nil {
		return settings{}, exitf(exitInvalid, "--data: %w", err)
	}
	return merged, nil
}

// check refuses flags that cannot be, and settings that do not go together.
func (s *service) check(cmd *cobra.Command, merged *settings) error {
	external := merged.natsURL != ""
	switch {
	case s.settings.workers < 0 || s.settings.workers > maxWorkers:
		return usage(cmd, "--workers %d: a number from 1 to %d is expected", s.settings.workers, maxWorkers)
	case !external && s.settings.natsAppCreds != "":
		return usage(cmd, "--app-creds is for an external server: give --nats, too")
	case external && s.settings.natsListen != "":
		return usage(cmd, "--nats-listen is for the embedded server, and --nats asks for another one")
	case external && merged.durability == natsd.SyncMemory:
		return exitf(exitInvalid, "durability %q is for the embedded server: an external one keeps what it is given", merged.durability)
	case !external && merged.streams.Replicas > 1:
		return exitf(exitInvalid, "settings: replicas = %d is for an external NATS cluster: give its url, too", merged.streams.Replicas)
	}
	return checkLevel(cmd, "log-level", s.logLevel)
}

func override[T comparable](to *T, with T) {
	var none T
	if with != none {
		*to = with
	}
}
