package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
)

// serveConfig is what a host serves, and with what.
type serveConfig struct {
	settings settings.Settings
	paths    []string      // flow files and directories, as they were given
	host     *host.Host    // with lines as its Lines
	flows    flows.Options // with which set was loaded
	set      *flows.Set
	lines    *guestLines
	reloads  <-chan os.Signal // each asks to load the flows again
	out      io.Writer        // gets a description of the host once it is ready
	log      *slog.Logger
}

// serve runs flows until soft ends and running attempts have finished, until hard
// ends, or until the engine or its journal fails.
func serve(soft, hard context.Context, c serveConfig) error {
	l, err := openLink(soft, c.settings, true, c.set, c.log)
	if err != nil {
		return err
	}
	c.lines.logs.Store(l.logs)
	n, err := newNode(soft, nodeConfig{
		Settings: c.settings, host: c.host, link: l, flows: c.flows, limits: c.set.Limits, invoker: logGuests(c.log), log: c.log,
	})
	if err != nil {
		return errors.Join(err, l.close())
	}
	n.start(hard)
	err = n.intake(soft, &c, &reloader{
		paths: c.paths, flows: c.flows, leave: []string{c.settings.Data, host.CachePath(c.settings.Cache)},
		watch: !c.settings.Unwatched, asked: c.reloads, log: c.log,
	})
	fault := n.stop(hard)
	return cmp.Or(fault, err, n.unkept, l.close())
}
