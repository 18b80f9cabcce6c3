package serve

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
)

// Config is what a host serves, and with what.
type Config struct {
	Settings settings.Settings
	Paths    []string      // flow files and directories, as they were given
	Host     *host.Host    // with lines as its Lines
	Outside  *Outside      // of that host
	Flows    flows.Options // with which set was loaded
	Set      *flows.Set
	Lines    *GuestLines
	Reloads  <-chan os.Signal // each asks to load settings and flows again
	Out      io.Writer        // gets a description of the host once it is ready
	Log      *slog.Logger
	Level    *slog.LevelVar // of Log

	SettingsFile string                            // watched; it need not exist
	Reread       func() (settings.Settings, error) // reads the settings again
}

// Run runs flows until soft ends, or an operator drains the host, and running attempts have
// finished, until hard ends, or until the engine or its journal fails.
func Run(soft, hard context.Context, c Config) error {
	soft, drain := context.WithCancelCause(soft)
	defer drain(nil)
	l, err := OpenLink(soft, c.Settings, true, c.Set, c.Log)
	if err != nil {
		return err
	}
	c.Lines.Logs.Store(l.logs)
	if err := c.Outside.Connect(l, &c.Settings); err != nil {
		return errors.Join(err, l.Close())
	}
	c.Outside.Deploy(c.Set)
	n, err := NewNode(soft, NodeConfig{
		Settings: c.Settings, Host: c.Host, Link: l, Flows: c.Flows, limits: c.Set.Limits, Log: c.Log,
		Invoker: func(next engine.Invoker) engine.Invoker { return logGuests(c.Log)(c.Outside.Guard(next)) },
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	n.Start(hard)
	reloading := c.Flows
	reloading.Catalog = host.Catalog{Host: c.Host, Compile: true} // before the switch, while the old flows are served
	r := &reloader{
		paths: c.Paths, flows: reloading, leave: []string{c.Settings.Data, host.CachePath(c.Settings.Cache)},
		watch: !c.Settings.Unwatched, asked: c.Reloads, log: c.Log,
		settings: liveSettings{
			file: c.SettingsFile, reread: c.Reread, started: c.Settings, last: c.Settings,
			engine: n.Engine, host: c.Host, outside: c.Outside, keeper: l.keeper, level: c.Level, log: c.Log,
		},
	}
	r.settings.warnOfNoWorkers()
	err = n.intake(soft, &c, r, &hostControl{engine: n.Engine, started: time.Now().UTC(), fault: r.fault, drain: drain, log: c.Log})
	fault := n.Stop(hard)
	err = cmp.Or(fault, err, n.unkept, l.Close())
	reportStop(&c, n.Engine.Stats(), err)
	return err
}

// reportStop logs what remains to be done. How much that is, is known after a graceful
// stop only; any other error is the last word.
func reportStop(c *Config, left engine.Stats, err error) {
	inMemory := c.Settings.NATSURL == "" && c.Settings.Durability == natsd.SyncMemory
	switch {
	case err == nil && inMemory:
		c.Log.Info("stopped; the journal was in memory, open runs are lost", "open_runs", left.Open)
	case err == nil:
		c.Log.Info("stopped; open runs resume at the next start", "open_runs", left.Open)
	case errors.Is(err, cli.ErrInterrupted) && !inMemory:
		c.Log.Info("stopped at once; open runs resume at the next start, interrupted attempts run again")
	}
}
