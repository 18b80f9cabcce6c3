package main

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
	"github.com/flowhost/flowhost/flows"
)

// quietTime is how long files must not have changed before they are loaded: whoever
// writes several of them is not to be disturbed in between.
const quietTime = 200 * time.Millisecond

// listenReloads tells of SIGHUP, which asks to load the flows anew. Signals that
// come while one waits are that one.
func listenReloads() (asked <-chan os.Signal, stop func()) {
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGHUP)
	return arrived, func() { signal.Stop(arrived) }
}

// served is what a host has deployed.
type served struct {
	set      *flows.Set
	infos    []api.FlowInfo
	deployed api.Deployment
}

// reloader puts changed flows in place of those that are deployed.
type reloader struct {
	paths  []string
	flows  flows.Options
	leave  []string // folders that are not watched, the host's own
	watch  bool
	asked  <-chan os.Signal
	put    func(context.Context, *flows.Set) error // makes a set the one that is deployed, or changes nothing
	log    *slog.Logger
	served atomic.Pointer[served]
}

// deployed notes that a set is deployed.
func (r *reloader) deployed(set *flows.Set) {
	r.served.Store(&served{
		set: set, infos: flowInfos(set), deployed: api.Deployment{Since: time.Now().UTC(), Flows: deployedFlows(set)},
	})
}

// run loads the flows anew when that is asked for and when their files have
// changed, until ctx ends.
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

// files watches the files of the flows; nil when that is not wanted.
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
	r.log.Warn("some changes of files are not seen: SIGHUP loads the flows anew", "error", err)
}

// load puts the flows of the files in place of those that are deployed. Whatever is
// wrong with them is reported, and nothing changes. Modules are compiled before
// anything does.
func (r *reloader) load(ctx context.Context) {
	set, diags := flows.Load(ctx, r.paths, r.flows)
	if ctx.Err() != nil {
		return
	}
	for _, d := range diags {
		if d.Severity == hcl.DiagWarning {
			r.log.Warn("a flow file", "problem", problemOf(d))
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
	added, changed, removed := changedFlows(before.deployed.Flows, r.served.Load().deployed.Flows)
	if len(added)+len(changed)+len(removed) == 0 {
		r.log.Info("the flows are loaded anew, and none has changed")
		return
	}
	r.log.Info("the flows are loaded anew: runs in progress keep theirs", "added", added, "changed", changed, "removed", removed)
}

// refuse reports flows that cannot be deployed.
func (r *reloader) refuse(problems []string) {
	for _, problem := range problems {
		r.log.Error("a flow file cannot be loaded", "problem", problem)
	}
	r.log.Error("the flows stay as they were: nothing of what has changed is taken", "problems", len(problems))
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
