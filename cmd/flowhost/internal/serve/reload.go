package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/plan"
	"github.com/flowhost/flowhost/flows"
)

// quietTime is how long files must be unchanged before they are loaded: several files
// may be written one after another.
const quietTime = 200 * time.Millisecond

// ListenReloads reports SIGHUP, which requests a reload of settings and flows. Signals that
// arrive while one is pending are merged with it.
func ListenReloads() (asked <-chan os.Signal, stop func()) {
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGHUP)
	return arrived, func() { signal.Stop(arrived) }
}

// served are the deployed flows, and their descriptions for clients.
type served struct {
	set      *flows.Set
	infos    []api.FlowInfo
	deployed api.Deployment
}

// reloader applies changed settings, and replaces the deployed flows with changed ones.
type reloader struct {
	paths    []string
	flows    flows.Options
	settings liveSettings
	leave    []string // the host's own directories, which are not watched
	watch    bool
	asked    <-chan os.Signal
	put      func(context.Context, *flows.Set, flows.Options) error // deploys a set that was loaded so, or changes nothing
	log      *slog.Logger
	served   atomic.Pointer[served]
}

// deployed records that a set is deployed.
func (r *reloader) deployed(set *flows.Set) {
	r.served.Store(&served{
		set: set, infos: flowInfos(set), deployed: api.Deployment{Since: time.Now().UTC(), Flows: plan.DeployedFlows(set)},
	})
}

// fault is why the changed files are not loaded, nil when nothing is wrong.
func (r *reloader) fault() *api.LoadFault { return r.served.Load().deployed.Fault }

// run reloads settings and flows on request and when their files have changed, until ctx
// ends.
func (r *reloader) run(ctx context.Context) {
	var events chan fsnotify.Event
	var faults chan error
	files, err := r.files()
	if err != nil {
		r.unwatched(err)
	} else if files != nil {
		defer files.Close()
		events, faults = files.Events, files.Errors
	}
	var quiet <-chan time.Time // nil until files have changed
	for {
		select {
		case e := <-events:
			changed, err := files.matters(e)
			if err != nil {
				r.unwatched(err)
			}
			if changed {
				quiet = time.After(quietTime)
			}
			continue
		case err := <-faults:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				r.unwatched(err)
			}
			quiet = time.After(quietTime) // whatever was missed
			continue
		case <-quiet:
		case <-r.asked:
		case <-ctx.Done():
			return
		}
		r.load(ctx)
		if files != nil {
			if err := files.follow(r.served.Load().set, r.flows.VarFiles); err != nil {
				r.unwatched(err)
			}
		}
	}
}

// files watches the files of the flows; it returns nil if watch is off.
func (r *reloader) files() (*fileWatch, error) {
	if !r.watch {
		return nil, nil
	}
	files, err := watchFiles(r.paths, r.leave)
	if err != nil {
		return nil, err
	}
	if err := files.add(absolute(r.settings.file)); err != nil {
		r.unwatched(err)
	}
	if err := files.follow(r.served.Load().set, r.flows.VarFiles); err != nil {
		r.unwatched(err)
	}
	return files, nil
}

func (r *reloader) unwatched(err error) {
	r.log.Warn("watching files failed, some changes go unnoticed: send SIGHUP to reload", "error", err)
}

// load applies the settings and the flows of the files: all of them, or nothing if any has
// errors, which it logs. Modules are compiled before anything changes.
func (r *reloader) load(ctx context.Context) {
	next, err := r.settings.reread()
	if err != nil {
		r.refuse(problemsOfSettings(err))
		return
	}
	options := r.flows
	options.Opened, options.Ceilings, options.Operator = next.Opened, next.Ceilings, next.Operator
	// What the operator takes away is denied although flows that are granted it may not load.
	r.settings.outside.Bound(next.Operator)
	var set *flows.Set
	var diags hcl.Diagnostics
	flowfiles.Checked(ctx, options, nil, func(options flows.Options) { set, diags = flows.Load(ctx, r.paths, options) })
	if ctx.Err() != nil {
		return
	}
	for _, d := range diags {
		if d.Severity == hcl.DiagWarning {
			r.log.Warn("warning in a flow file", "problem", problemOf(d))
		}
	}
	if diags.HasErrors() {
		r.log.Info("allow blocks apply as they are now, whether or not the flows load")
		r.refuse(problemsOf(diags))
		return
	}
	err = r.settings.changeStreams(ctx, &next)
	if err == nil {
		err = r.put(ctx, set, options)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.refuse([]string{err.Error()})
		}
		return
	}
	r.flows = options
	r.settings.outside.Deploy(set)
	tuned := r.settings.apply(next)
	if !r.replaced(set) && !tuned {
		r.log.Info("flows and settings reloaded, no changes")
	}
}

// replaced records that a set is deployed, logs what it changes, and reports whether it
// changes anything.
func (r *reloader) replaced(set *flows.Set) bool {
	before := r.served.Load()
	r.deployed(set)
	added, changed, removed := plan.ChangedFlows(before.deployed.Flows, r.served.Load().deployed.Flows)
	if len(added)+len(changed)+len(removed) == 0 {
		return false
	}
	r.log.Info("flows reloaded, open runs keep their definitions", "added", added, "changed", changed, "removed", removed)
	return true
}

// refuse logs why files cannot be loaded.
func (r *reloader) refuse(problems []string) {
	for _, problem := range problems {
		r.log.Error("loading a file failed", "problem", problem)
	}
	r.log.Error("reload failed, keeping the current flows and settings", "problems", len(problems))
	failed := *r.served.Load()
	failed.deployed.Fault = &api.LoadFault{At: time.Now().UTC(), Problems: problems}
	r.served.Store(&failed)
}

func problemsOf(diags hcl.Diagnostics) []string {
	var all []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			all = append(all, problemOf(d))
		}
	}
	return all
}

// problemOf is a diagnostic on one line.
func problemOf(d *hcl.Diagnostic) string {
	text := d.Summary + ": " + strings.Join(strings.Fields(d.Detail), " ")
	if d.Subject != nil {
		text = fmt.Sprintf("%s:%d: %s", d.Subject.Filename, d.Subject.Start.Line, text)
	}
	return text
}
