package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Killer ends a host again and again while a load is on it.
type Killer struct {
	Host *Host
	Load *Load
	Rand *rand.Rand

	// End ends a process, which has ended when it returns. Default: it is killed.
	End func(*Process) error

	Killed map[Moment]int
	Leader int // how often the NATS server that leads the journal was killed; never the only one
	GaveUp int // how often a process found no usable NATS server and ended with exit code 4
}

// exitUnreachable is the exit code of a process that cannot use its NATS server.
const exitUnreachable = 4

// lifetime bounds the life of one process: one that does not serve by then never
// does.
const lifetime = time.Minute

// Kill lets a process live up to a random moment and kills it then.
func (k *Killer) Kill(ctx context.Context) error {
	m := pick(k.Rand)
	err := k.life(ctx, func(ctx context.Context, p *Process) (err error) {
		m, err = m.await(ctx, k.Host, p, k.Rand)
		return err
	})
	if err != nil {
		return fmt.Errorf("before a kill at moment %q: %w", m, err)
	}
	if k.Killed == nil {
		k.Killed = map[Moment]int{}
	}
	k.Killed[m]++
	return nil
}

// life starts a process, puts the load on it, kills it when during returns and
// takes the load away.
func (k *Killer) life(ctx context.Context, during func(context.Context, *Process) error) error {
	ctx, cancel := context.WithTimeout(ctx, lifetime)
	defer cancel()
	p, err := k.Host.Start()
	if err != nil {
		return err
	}
	var loading sync.WaitGroup
	loading.Go(func() { k.load(ctx) })
	// An only server has no other one to lead in its place. It is for End to end.
	if c := k.Host.Cluster; c != nil && len(c.Nodes) > 1 && k.Rand.IntN(4) == 0 {
		delay, rest := spread(k.Rand, time.Second), spread(k.Rand, 500*time.Millisecond)
		k.Leader++
		loading.Go(func() { err = k.killLeader(ctx, delay, rest) })
	}
	failed := during(ctx, p)
	ending := k.end(p)
	if k.Host.Cluster != nil && p.ExitCode() == exitUnreachable {
		k.GaveUp++ // whoever watches over the process starts it again
		failed = nil
	}
	cancel()
	loading.Wait()
	return errors.Join(failed, ending, err)
}

func (k *Killer) end(p *Process) error {
	if k.End != nil {
		return k.End(p)
	}
	p.Kill()
	return nil
}

func (k *Killer) load(ctx context.Context) {
	nc, err := k.Host.Connect(ctx)
	if err != nil {
		return // the process was killed before it could be reached
	}
	defer nc.Close()
	k.Load.Run(ctx, nc)
}

// killLeader kills the NATS server that leads the journal, if there is one by
// then, and starts it again.
func (k *Killer) killLeader(ctx context.Context, delay, rest time.Duration) error {
	sleep(ctx, delay)
	leader, err := k.Host.Cluster.Leader(ctx, "FH_JOURNAL")
	if err != nil || ctx.Err() != nil {
		return nil
	}
	leader.Kill()
	sleep(ctx, rest)
	return leader.Start()
}

// Settle starts a last process, waits until everything that was accepted has
// ended, stops it and gives what does not hold.
func (k *Killer) Settle(ctx context.Context) (*Archive, []Finding, error) {
	p, err := k.serve(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer p.Kill()
	nc, err := k.Host.Operator(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer nc.Close()
	return k.Host.audit(ctx, nc, p, k.Load)
}

// serve starts a process that serves.
func (k *Killer) serve(ctx context.Context) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, lifetime)
	defer cancel()
	for {
		p, err := k.Host.Start()
		if err != nil {
			return nil, err
		}
		if err = k.Host.Serves(ctx, p); err == nil {
			return p, nil
		}
		p.Kill()
		if k.Host.Cluster == nil || p.ExitCode() != exitUnreachable {
			return nil, err
		}
		k.GaveUp++
	}
}

// audit reads what a host that is up tells of what a load has asked for, stops its
// process, reads the history and checks it all.
func (h *Host) audit(ctx context.Context, nc *nats.Conn, p *Process, l *Load) (*Archive, []Finding, error) {
	a, err := ReadArchive(ctx, nc, l)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; the process said:\n%s", err, p.Output())
	}
	stopped := p.Stop(ctx)
	err = h.inside(ctx, func(nc *nats.Conn) error { return a.readHistory(ctx, nc) })
	if err != nil {
		return nil, nil, fmt.Errorf("%w; the process said:\n%s", errors.Join(err, stopped), p.Output())
	}
	effects, err := h.Site.Effects()
	if err != nil {
		return nil, nil, err
	}
	return a, Check(l.Ledger, a, effects), stopped
}
