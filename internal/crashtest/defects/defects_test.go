//go:build defects

package defects_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/internal/crashtest"
)

// Each test has the number of an issue of nats-io/nats-server in its name.

// round is one round of faults, on a rig that is intact: fault is called while a
// host writes after the revision last. In every second round on average the host
// dies with the first fault, so that only what it has published knows the end of
// the journal. It gives the last revision, and reports whether the rig can be used
// again.
func (r *rig) round(last uint64, compact int, fault func(die func())) (uint64, bool) {
	r.Helper()
	r.counts.rounds++
	w := r.write(last, compact)
	if !r.settle(w) {
		w.stop()
		r.Logf("nothing is acknowledged before the faults: %v", w.err)
		r.counts.verdicts[unavailable]++
		return 0, false
	}
	r.pause(3 * time.Second)
	dies := r.IntN(2) == 0
	fault(func() {
		if dies {
			w.stop()
		}
	})
	r.cluster.Links.Heal()
	if dies {
		w.stop()
		if !r.available() {
			return r.restartAll()
		}
		return r.audit()
	}
	usable := r.settle(w)
	w.stop()
	if !usable && !r.available() {
		return r.restartAll()
	}
	return r.audit()
}

// available waits until the streams have leaders.
func (r *rig) available() bool {
	for end := time.Now().Add(settling); time.Now().Before(end) && r.Context().Err() == nil; {
		if r.info(bus.StreamJournal) != nil && r.info(bus.StreamMarks) != nil && r.info(bus.StreamTriggers) != nil {
			return true
		}
		wait(r.Context(), time.Second)
	}
	return false
}

// restartAll is what an operator does with a cluster that is stuck: all servers are
// started again. What can be read then is judged.
func (r *rig) restartAll() (uint64, bool) {
	r.Helper()
	r.Logf("the cluster does not come back; all servers are started again")
	for _, n := range r.cluster.Nodes {
		n.Kill()
	}
	for _, n := range r.cluster.Nodes {
		r.restart(n)
	}
	if !r.available() {
		r.Logf("the cluster does not come back after that either")
	}
	return r.audit()
}

// Test7545 changes who is a member of the cluster. By the rules, no server is
// removed while links are cut or servers are away, and one that was removed comes
// back with another name and an empty store. Against them, anything goes.
func Test7545(t *testing.T) {
	t.Run("by the rules", func(t *testing.T) { members(t, true) })
	t.Run("against the rules", func(t *testing.T) { members(t, false) })
}

func members(t *testing.T, rules bool) {
	tr := newTrial(t, 0.5)
	var r *rig
	var last uint64
	for ok := false; tr.more(); {
		if !ok {
			r, last = renewRig(r, tr, 5, 3), 0
		}
		last, ok = r.round(last, 0, func(die func()) { r.change(rules, die) })
	}
	r.close()
}

// renewRig replaces a rig that is not intact.
func renewRig(old *rig, tr *trial, nodes, replicas int) *rig {
	if old != nil {
		old.close()
	}
	return tr.newRig(nodes, replicas)
}

// change parts, kills and removes servers.
func (r *rig) change(rules bool, die func()) {
	order := r.Perm(len(r.cluster.Nodes))
	gone, other := r.cluster.Nodes[order[0]], r.cluster.Nodes[order[1]]
	if r.IntN(2) == 0 {
		if i := r.info(bus.StreamJournal); i != nil {
			gone = r.node(i.Cluster.Leader)
		}
	}
	if rules {
		r.remove(gone, true, time.Minute)
		if behind := r.current(bus.StreamJournal, bus.StreamMarks, bus.StreamTriggers); behind != "" {
			r.counts.stuck++
			r.Logf("%s is behind after a server was removed", behind)
		}
	}
	r.counts.faults += 2
	die()
	r.cluster.Links.Cut(r.IntN(2) == 0, order[2])
	r.pause(2 * time.Second)
	killed := []*crashtest.Node{r.cluster.Nodes[order[2]], other}
	if r.IntN(2) == 0 {
		killed = append(killed, r.cluster.Nodes[order[3]])
	}
	for _, n := range killed {
		n.Kill()
	}
	if !rules {
		r.pause(time.Second)
		r.remove(gone, r.IntN(2) == 0, 8*time.Second)
	}
	r.pause(2 * time.Second)
	for _, n := range killed {
		r.restart(n)
	}
	r.pause(5 * time.Second)
}

// remove removes a server from the stream or from the cluster. One that is removed
// from the cluster is stopped before, and comes back as another one, or as the one
// that it was.
func (r *rig) remove(n *crashtest.Node, asNew bool, patience time.Duration) {
	r.counts.faults++
	if r.IntN(2) == 0 {
		answer := r.request(r.nc, "$JS.API.STREAM.PEER.REMOVE."+bus.StreamJournal, map[string]any{"peer": n.Name})
		if strings.Contains(answer, `"success":true`) {
			r.counts.removed++
		}
		return
	}
	n.Kill()
	r.pause(2 * time.Second)
	if r.removeServer(n.Name, patience) && asNew {
		r.renew(n)
	}
	r.restart(n)
}

// Test7549 flips bits in the files of servers that were killed: of one of three,
// of two of them, of the only one.
func Test7549(t *testing.T) {
	for _, c := range []struct {
		name            string
		nodes, replicas int
		damaged         int
	}{{"a minority", 3, 3, 1}, {"a majority", 3, 3, 2}, {"the only copy", 1, 1, 1}} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial(t, 1./3)
			var r *rig
			var last uint64
			for ok := false; tr.more(); {
				if !ok {
					r, last = renewRig(r, tr, c.nodes, c.replicas), 0
				}
				last, ok = r.round(last, 0, func(die func()) { r.flips(c.damaged, die) })
			}
			r.close()
		})
	}
}

// flips flips bits of servers that are not running. Often all servers have ended,
// and those that are damaged come back first. One that was stopped has left an index,
// and does not look at the messages when it starts.
func (r *rig) flips(servers int, die func()) {
	die()
	order := r.Perm(len(r.cluster.Nodes))
	damaged, others := order[:servers], order[servers:]
	end := (*crashtest.Node).Kill
	if r.IntN(2) == 0 {
		end = r.stop
	}
	for _, i := range damaged {
		end(r.cluster.Nodes[i])
	}
	if r.IntN(3) == 0 {
		others = nil
	}
	for _, i := range others {
		end(r.cluster.Nodes[i])
	}
	r.pause(2 * time.Second)
	for _, i := range damaged {
		r.damage(r.cluster.Nodes[i])
		r.restart(r.cluster.Nodes[i])
	}
	for _, i := range others {
		r.restart(r.cluster.Nodes[i])
		r.pause(10 * time.Second)
	}
	r.pause(5 * time.Second)
}

// damage flips bits in files of a server: of the journal, of any stream, of what the
// servers agree upon before it is in a stream.
func (r *rig) damage(n *crashtest.Node) {
	jet := filepath.Join(n.Store, "jetstream")
	files := []string{filepath.Join(jet, "*", "streams", bus.StreamJournal, "msgs", "*.blk")}
	switch r.IntN(4) {
	case 0:
		files = []string{filepath.Join(jet, "*", "streams", "FH_*", "msgs", "*")}
	case 1:
		files = append(files, filepath.Join(jet, "*", "_js_", "S-*", "msgs", "*.blk"))
	}
	changed, err := flip(r.Rand, 1+r.IntN(3), files...)
	if err != nil {
		r.Fatal(err)
	}
	r.counts.faults += len(changed)
	for file := range changed {
		r.Logf("%s: flipped a bit of %s", n.Name, strings.TrimPrefix(file, jet))
	}
}

// Test7556 flips bits of the snapshots of the cluster's own state.
func Test7556(t *testing.T) {
	for servers := 1; servers <= 2; servers++ {
		t.Run(fmt.Sprintf("%d of 3 servers", servers), func(t *testing.T) {
			tr := newTrial(t, 0.5)
			var r *rig
			var last uint64
			for ok := false; tr.more(); {
				if !ok {
					r, last = renewRig(r, tr, 3, 3), 0
					r.snapshots(servers)
				}
				last, ok = r.round(last, 0, func(die func()) { r.corrupt(servers, die) })
			}
			r.close()
		})
	}
}

func metaSnapshots(n *crashtest.Node) string {
	return filepath.Join(n.Store, "jetstream", "*", "_js_", "_meta_", "snapshots", "*")
}

// snapshots waits until so many servers have a snapshot of the cluster's state. One
// is made after a start, or each minute.
func (r *rig) snapshots(servers int) {
	r.Helper()
	for _, n := range r.cluster.Nodes {
		n.Kill()
		r.restart(n)
		wait(r.Context(), time.Second)
		r.available()
	}
	for end := time.Now().Add(settling); time.Now().Before(end); {
		have := 0
		for _, n := range r.cluster.Nodes {
			if found, err := filepath.Glob(metaSnapshots(n)); err == nil && len(found) > 0 {
				have++
			}
		}
		if have >= servers {
			return
		}
		wait(r.Context(), time.Second)
	}
	r.Fatal("no server has made a snapshot of the cluster's state")
}

// corrupt damages snapshots of servers that have one, and mends the cluster
// afterwards.
func (r *rig) corrupt(servers int, die func()) {
	die()
	damaged := map[*crashtest.Node]map[string][]byte{}
	for _, i := range r.Perm(len(r.cluster.Nodes)) {
		n := r.cluster.Nodes[i]
		if found, err := filepath.Glob(metaSnapshots(n)); err != nil || len(found) == 0 || len(damaged) == servers {
			continue
		}
		n.Kill()
		changed, err := flip(r.Rand, 1, metaSnapshots(n))
		if err != nil {
			r.Fatal(err)
		}
		r.counts.faults += len(changed)
		damaged[n] = changed
	}
	for n := range damaged {
		r.restart(n)
	}
	r.pause(10 * time.Second)
	// The others are started again, too, to see what they do with what they are told.
	if r.IntN(2) == 0 {
		for _, n := range r.cluster.Nodes {
			n.Kill()
		}
		for _, n := range r.cluster.Nodes {
			r.restart(n)
		}
		r.pause(10 * time.Second)
	}
	for n, was := range damaged {
		said := n.Process().Output()
		if strings.Contains(said, "snapshot corrupt") {
			r.counts.refused++
		}
		if strings.Contains(said, "orphaned stream") {
			r.Logf("%s deletes streams: %s", n.Name, tail(said, 600))
		}
		n.Kill()
		r.replace(n, len(damaged) > 1, was)
	}
	if behind := r.current(bus.StreamJournal, bus.StreamMarks, bus.StreamTriggers); behind != "" {
		r.counts.stuck++
		r.Logf("%s is behind after servers were replaced", behind)
	}
}

// replace is what an operator does with a server that refuses its store. While there
// is a quorum, another one takes its place; otherwise the damaged files are put back
// from a copy.
func (r *rig) replace(n *crashtest.Node, alone bool, was map[string][]byte) {
	if !alone && r.removeServer(n.Name, time.Minute) {
		r.renew(n)
	} else {
		for file, text := range was {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				r.Fatal(err)
			}
		}
	}
	r.restart(n)
}

// Test6888 kills servers again and again, often right after a stream was made.
func Test6888(t *testing.T) {
	tr := newTrial(t, 1)
	var r *rig
	var last uint64
	for ok := false; tr.more(); {
		if !ok {
			r, last = renewRig(r, tr, 3, 3), 0
		}
		fresh := fmt.Sprintf("FRESH%d", tr.counts.rounds)
		made := false
		last, ok = r.round(last, 0, func(die func()) { made = r.kills(fresh, die) })
		if made && ok && !r.exists(fresh) {
			tr.Errorf("stream %s was acknowledged and is forgotten", fresh)
			r.logServers()
		}
	}
	r.close()
}

// kills makes a stream with one message, and kills all servers in any order, or
// some of them several times. It reports whether stream and message were
// acknowledged.
func (r *rig) kills(fresh string, die func()) bool {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	made := false
	js, err := jetstream.New(r.nc)
	if err == nil {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: fresh, Subjects: []string{fresh}, Replicas: 3})
	}
	if err == nil {
		_, err = js.Publish(ctx, fresh, []byte("there"))
		made = err == nil
	}
	die()
	for range 1 + r.IntN(3) {
		order := r.Perm(3)
		for _, i := range order[:1+r.IntN(3)] {
			r.counts.faults++
			r.cluster.Nodes[i].Kill()
			if r.IntN(3) == 0 {
				r.pause(300 * time.Millisecond)
			}
		}
		for _, n := range r.cluster.Nodes {
			select {
			case <-n.Process().Ended():
				r.restart(n)
			default:
			}
		}
		r.pause(3 * time.Second)
	}
	return made
}

func (r *rig) exists(stream string) bool {
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	js, err := jetstream.New(r.nc)
	if err != nil {
		return false
	}
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		s, err := js.Stream(one, stream)
		if err == nil {
			_, err = s.GetMsg(one, 1)
		}
		cancel()
		if err == nil {
			return true
		}
		wait(ctx, time.Second)
	}
	return false
}

// Test8319 takes followers away while the journal is written and compacted, so that
// they have to catch up beyond the log of the replicas.
func Test8319(t *testing.T) {
	tr := newTrial(t, 1)
	var r *rig
	var last uint64
	for ok := false; tr.more(); {
		if !ok {
			r, last = renewRig(r, tr, 3, 3), 0
		}
		last, ok = r.round(last, 64, func(die func()) { r.leaveBehind(die) })
	}
	r.close()
}

// leaveBehind takes servers away, in any way that leaves the others a quorum, and
// waits until they have caught up.
func (r *rig) leaveBehind(die func()) {
	for range 1 + r.IntN(3) {
		r.counts.faults++
		n := r.IntN(3)
		node := r.cluster.Nodes[n]
		switch r.IntN(4) {
		case 0:
			node.Process().Signal(syscall.SIGSTOP)
			r.pause(10 * time.Second)
			node.Process().Signal(syscall.SIGCONT)
		case 1:
			r.cluster.Links.Cut(r.IntN(2) == 0, n)
			r.pause(10 * time.Second)
			r.cluster.Links.Heal()
		case 2:
			node.Kill()
			r.pause(10 * time.Second)
			r.restart(node)
		case 3: // away while it catches up
			for range 3 {
				node.Kill()
				r.pause(3 * time.Second)
				r.restart(node)
				r.pause(2 * time.Second)
			}
		}
		r.pause(2 * time.Second)
	}
	die()
	behind := r.current(bus.StreamJournal, bus.StreamMarks, bus.StreamTriggers)
	if behind == "" {
		return
	}
	r.counts.stuck++
	r.Errorf("%s does not catch up within %s", behind, settling)
	r.logServers()
}
