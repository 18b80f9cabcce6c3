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
	"github.com/flowhost/flowhost/cmd/flowhost/internal/plan"
	"github.com/flowhost/flowhost/flows"
)

// quietTime is how long files must be unchanged before they are loaded: several files
// may be written one after another.
const quietTime = 200 * time.Millisecond

// ListenReloads reports SIGHUP, which requests a reload of the flows. Signals that
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

// reloader replaces the deployed flows with changed ones.
type reloader struct {
	paths  []string
	flows  flows.Options
	leave  []string // the host's own directories, which are not watched
	watch  bool
	asked  <-chan os.Signal
	put    func(context.Context, *flows.Set) error // deploys a set, or changes nothing
	log    *slog.Logger
	served atomic.Pointer[served]
}

// deployed records that a set is deployed.
func (r *reloader) deployed(set *flows.Set) {
	r.served.Store(&served{
		set: set, infos: flowInfos(set), deployed: api.Deployment{Since: time.Now().UTC(), Flows: plan.DeployedFlows(set)},
	})
}

// run reloads the flows on request and when their files have changed, until ctx
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
	if err := files.follow(r.served.Load().set, r.flows.VarFiles); err != nil {
		r.unwatched(err)
	}
	return files, nil
}

func (r *reloader) unwatched(err error) {
	r.log.Warn("watching files failed, some changes go unnoticed: send SIGHUP to reload", "error", err)
}

// load replaces the deployed flows with those of the files. If they have errors, it
// logs them and changes nothing. Modules are compiled before anything changes.
func (r *reloader) load(ctx context.Context) {
	set, diags := flows.Load(ctx, r.paths, r.flows)
	if ctx.Err() != nil {
		return
	}
	for _, d := range diags {
		if d.Severity == hcl.DiagWarning {
			r.log.Warn("warning in a flow file", "problem", problemOf(d))
		}
	}
	if diags.HasErrors() {
		r.refuse(problemsOf(diags))
		return
	}
	if err := r.put(ctx, set); err != nil {
		if ctx.Err() == nil {
			r.refuse([]string{err.Error()})
		}
		return
	}
	before := r.served.Load()
	r.deployed(set)
	added, changed, removed := plan.ChangedFlows(before.deployed.Flows, r.served.Load().deployed.Flows)
	if len(added)+len(changed)+len(removed) == 0 {
		r.log.Info("flows reloaded, no changes")
		return
	}
	r.log.Info("flows reloaded, open runs keep their definitions", "added", added, "changed", changed, "removed", removed)
}

// refuse logs why flows cannot be deployed.
func (r *reloader) refuse(problems []string) {
	for _, problem := range problems {
		r.log.Error("loading a flow file failed", "problem", problem)
	}
	r.log.Error("reload failed, keeping the current flows", "problems", len(problems))
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
