//go:build defects

package defects_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/internal/crashtest"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// Bounds of what waits for a cluster. They are long: the machine may be busy.
const (
	starting = 3 * time.Minute
	settling = 3 * time.Minute
)

// rig is a cluster with a journal, and the ledger of what it acknowledged.
type rig struct {
	*trial
	cluster  *crashtest.Cluster
	ledger   *ledger
	replicas int
	nc       *nats.Conn // of the host that writes and audits
	renewed  int        // servers that got another name
}

// newRig starts a cluster and provisions all streams on it.
func (tr *trial) newRig(nodes, replicas int) *rig {
	tr.Helper()
	tr.counts.clusters++
	dir := tr.TempDir()
	ctx, cancel := context.WithTimeout(tr.Context(), starting)
	defer cancel()
	c, err := crashtest.StartCluster(ctx, crashtest.ClusterConfig{Dir: dir, Stores: filepath.Join(dir, "stores"), Nodes: nodes, Sync: "always", Links: true})
	if err != nil {
		tr.Fatal(err)
	}
	r := &rig{trial: tr, cluster: c, ledger: newLedger(), replicas: replicas}
	r.connect(ctx)
	if err := r.provision(ctx); err != nil {
		r.close()
		tr.Fatal(err)
	}
	return r
}

// provision makes the streams, as a host does at its start. It tries again while the
// cluster cannot.
func (r *rig) provision(ctx context.Context) error {
	cfg := bus.StreamConfig{Replicas: r.replicas}
	for {
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := bus.ProvisionJournal(one, r.nc, cfg)
		if err == nil {
			err = bus.Provision(one, r.nc, cfg)
		}
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		wait(ctx, 500*time.Millisecond)
	}
}

func (r *rig) connect(ctx context.Context) {
	r.Helper()
	nc, err := bus.Connect(ctx, bus.ConnectConfig{URL: r.cluster.URL()})
	if err != nil {
		r.Fatal(err)
	}
	r.nc = nc
}

// close ends everything of the rig.
func (r *rig) close() {
	r.nc.Close()
	r.cluster.Stop()
}

// writing is a host that writes, until stop is called.
type writing struct {
	stop  func()        // the host dies: nothing is flushed
	ended chan struct{} // closed when it has, also because an append was refused
	err   error         // the last one of what it could not begin; to be read when it has ended
	acked chan struct{} // gets a value, unless one waits there, with each acknowledged commit
}

// write starts a host that appends to the journal what follows the revision last,
// marks its end and sends triggers. compact is the number of commits
// that it leaves in the journal; 0 for all.
func (r *rig) write(last uint64, compact int) *writing {
	ctx, cancel := context.WithCancel(r.Context())
	w := &writing{acked: make(chan struct{}, 1), ended: make(chan struct{})}
	w.stop = func() { cancel(); <-w.ended }
	go func() {
		defer close(w.ended)
		for ctx.Err() == nil {
			var fenced bool
			if last, fenced = r.append(ctx, w, last, compact); fenced {
				r.counts.rejected++
				return
			}
		}
	}()
	return w
}

// append opens the journal and appends to it until ctx ends or an append is
// refused.
func (r *rig) append(ctx context.Context, w *writing, last uint64, compact int) (uint64, bool) {
	j, err := journal.New(ctx, r.nc, 0, journal.Config{Timeout: 2 * time.Second})
	if err != nil {
		w.err = err
		wait(ctx, 100*time.Millisecond)
		return last, false
	}
	mark, err := journal.NewMark(r.nc, 0, journal.MarkConfig{})
	if err != nil {
		w.err = err
		return last, false
	}
	marking, cancel := context.WithCancel(ctx)
	marked := make(chan struct{})
	go func() { defer close(marked); mark.Run(marking) }()
	defer func() { cancel(); <-marked }()
	js, err := jetstream.New(r.nc)
	if err != nil {
		return last, false
	}
	for n := 1; ; n++ {
		event := run.Event{Run: run.NewID(time.Now()), At: time.Now().UTC(), Data: &run.Started{}}
		var c wire.Commit
		if err := c.Add(event); err != nil {
			r.Errorf("commit: %v", err)
			return last, true
		}
		stored := c.Seal(last)
		r.ledger.sent[wire.CommitSum(stored)] = true
		revision, err := j.Append(ctx, last, stored)
		if errors.Is(err, run.ErrFenced) {
			r.Logf("an append is refused: %v", err)
			return last, true
		}
		if err != nil {
			return last, false
		}
		r.ledger.acked = append(r.ledger.acked, commit{revision, wire.CommitSum(stored)})
		r.counts.acked++
		last = revision
		select {
		case w.acked <- struct{}{}:
		default:
		}
		mark.Durable(revision)
		if n%4 == 0 {
			r.trigger(ctx, js, string(event.Run))
		}
		if compact > 0 && n%32 == 0 && len(r.ledger.acked) > compact {
			r.ledger.floor = r.ledger.acked[len(r.ledger.acked)-compact].revision
			j.Compact(ctx, r.ledger.floor)
		}
	}
}

// trigger sends a message that asks for a run, until it is acknowledged.
func (r *rig) trigger(ctx context.Context, js jetstream.JetStream, id string) {
	r.ledger.asked[id] = true
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		ack, err := js.PublishMsg(one, &nats.Msg{Subject: bus.TriggerSubject("defects"), Data: []byte(id), Header: nats.Header{jetstream.MsgIDHeader: {id}}})
		cancel()
		if err == nil {
			r.ledger.triggers[id] = ack.Sequence
			r.counts.triggers++
			return
		}
		wait(ctx, 50*time.Millisecond)
	}
}

// settle waits until a commit is acknowledged. It reports whether one was.
func (r *rig) settle(w *writing) bool {
	select {
	case <-w.acked: // of before
	default:
	}
	select {
	case <-w.acked:
		return true
	case <-time.After(settling):
	case <-w.ended:
	case <-r.Context().Done():
	}
	return false
}

// info is what the leader of a stream says, nil when none does.
func (r *rig) info(stream string) *jetstream.StreamInfo {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	js, err := jetstream.New(r.nc)
	if err != nil {
		return nil
	}
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
		return nil
	}
	return s.CachedInfo()
}

// peers are the servers that hold a stream, one unknown one when nobody says so.
func (r *rig) peers(stream string) []string {
	i := r.info(stream)
	if i == nil {
		return []string{""}
	}
	all := []string{i.Cluster.Leader}
	for _, p := range i.Cluster.Replicas {
		all = append(all, p.Name)
	}
	return all
}

// lead asks for another leader of a stream and gives the one that it has.
func (r *rig) lead(stream, peer string) string {
	if peer == "" {
		return "unknown"
	}
	leader := ""
	for range 20 {
		i := r.info(stream)
		if i != nil {
			if leader = i.Cluster.Leader; leader == peer {
				return leader
			}
			r.request(r.nc, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, map[string]any{"placement": map[string]any{"preferred": peer}})
		}
		wait(r.Context(), 500*time.Millisecond)
	}
	return leader
}

// request asks the server for something and gives its answer, or the error.
func (r *rig) request(nc *nats.Conn, subject string, body any) string {
	text, err := json.Marshal(body)
	if err != nil {
		return err.Error()
	}
	m, err := nc.Request(subject, text, 5*time.Second)
	if err != nil {
		return err.Error()
	}
	return string(m.Data)
}

// removeServer removes a server from the cluster, as an operator does, and tries for
// some time. It reports whether the cluster agreed.
func (r *rig) removeServer(name string, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for {
		answer := r.removeOnce(name)
		if strings.Contains(answer, `"success":true`) {
			r.counts.removed++
			return true
		}
		if wait(ctx, time.Second); ctx.Err() != nil {
			r.Logf("%s cannot be removed from the cluster: %.200s", name, answer)
			return false
		}
	}
}

func (r *rig) removeOnce(name string) string {
	nc, err := nats.Connect(r.cluster.URL(), nats.UserInfo(crashtest.SystemUser, crashtest.SystemUser), nats.Timeout(5*time.Second))
	if err != nil {
		return err.Error()
	}
	defer nc.Close()
	return r.request(nc, "$JS.API.SERVER.REMOVE", map[string]any{"peer": name, "peer_id": peerID(name)})
}

// peerID is the server's own hash of a name: the others forget the name of a server
// that is away when they are started again.
func peerID(name string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(name))
	id := make([]byte, 8)
	for i := range id {
		id[i] = digits[int(sum[i])%len(digits)]
	}
	return string(id)
}

// stop ends a server as an operator does.
func (r *rig) stop(n *crashtest.Node) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		r.Logf("%s: %v", n.Name, err)
	}
}

// restart starts a server unless it is running.
func (r *rig) restart(n *crashtest.Node) {
	select {
	case <-n.Process().Ended():
	default:
		return
	}
	if err := n.Start(); err != nil {
		r.Fatal(err)
	}
}

// renew makes a server that has ended another one with an empty store.
func (r *rig) renew(n *crashtest.Node) {
	r.renewed++
	if err := n.Renew(fmt.Sprintf("new%d", r.renewed)); err != nil {
		r.Fatal(err)
	}
}

// node is the server with the name, or any when there is none.
func (r *rig) node(name string) *crashtest.Node {
	for _, n := range r.cluster.Nodes {
		if n.Name == name {
			return n
		}
	}
	return r.cluster.Nodes[r.IntN(len(r.cluster.Nodes))]
}

// current waits until all replicas of the streams report that they are. It gives the
// server that does not, "" for none.
func (r *rig) current(streams ...string) (behind string) {
	for end := time.Now().Add(settling); time.Now().Before(end) && r.Context().Err() == nil; {
		if behind = r.behind(streams...); behind == "" {
			return ""
		}
		wait(r.Context(), 500*time.Millisecond)
	}
	return behind
}

func (r *rig) behind(streams ...string) string {
	for _, stream := range streams {
		i := r.info(stream)
		if i == nil {
			return "no leader of " + stream
		}
		for _, p := range i.Cluster.Replicas {
			if !p.Current || p.Offline || p.Lag > 0 {
				return p.Name + " of " + stream
			}
		}
	}
	return ""
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// pause lets the host write for a while.
func (r *rig) pause(most time.Duration) { wait(r.Context(), time.Duration(r.Int64N(int64(most)))) }
