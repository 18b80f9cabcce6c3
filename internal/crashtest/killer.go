package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Killer kills a host repeatedly under load.
type Killer struct {
	Host *Host
	Load *Load
	Rand *rand.Rand

	// End ends a process and waits for its end. Default: it kills the process.
	End func(*Process) error

	Killed map[KillPoint]int
	Leader int // how often the NATS server that leads the journal was killed; never the only one
	GaveUp int // how often a process found no usable NATS server and ended with exit code 4
}

// exitUnreachable is the exit code of a process that cannot use its NATS server.
const exitUnreachable = 4

// lifetime bounds the life of one process, and the time until it serves.
const lifetime = time.Minute

// Kill starts a process and kills it at a random kill point.
func (k *Killer) Kill(ctx context.Context) error {
	m := pick(k.Rand)
	err := k.life(ctx, func(ctx context.Context, p *Process) (err error) {
		m, err = m.await(ctx, k.Host, p, k.Rand)
		return err
	})
	if err != nil {
		return fmt.Errorf("before a kill at %q: %w", m, err)
	}
	if k.Killed == nil {
		k.Killed = map[KillPoint]int{}
	}
	k.Killed[m]++
	return nil
}

// life starts a process and the load, ends the process when during returns and stops
// the load.
func (k *Killer) life(ctx context.Context, during func(context.Context, *Process) error) error {
	ctx, cancel := context.WithTimeout(ctx, lifetime)
	defer cancel()
	p, err := k.Host.Start()
	if err != nil {
		return err
	}
	var loading sync.WaitGroup
	loading.Go(func() { k.load(ctx) })
	// A single server has no successor as leader: End may end it.
	if c := k.Host.Cluster; c != nil && len(c.Nodes) > 1 && k.Rand.IntN(4) == 0 {
		delay, rest := spread(k.Rand, time.Second), spread(k.Rand, 500*time.Millisecond)
		k.Leader++
		loading.Go(func() { err = k.killLeader(ctx, delay, rest) })
	}
	failed := during(ctx, p)
	ending := k.end(p)
	if k.Host.Cluster != nil && p.ExitCode() == exitUnreachable {
		k.GaveUp++ // a supervisor would restart the process
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

// Settle starts a last process, waits until all accepted runs have ended, stops the
// process and returns the broken promises.
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

// audit reads the events of a running host, stops its process, reads the history and
// checks both against the load's ledger.
func (h *Host) audit(ctx context.Context, nc *nats.Conn, p *Process, l *Load) (*Archive, []Finding, error) {
	a, err := ReadArchive(ctx, nc, l)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; output of the process:\n%s", err, p.Output())
	}
	stopped := p.Stop(ctx)
	err = h.inside(ctx, func(nc *nats.Conn) error { return a.readHistory(ctx, nc) })
	if err != nil {
		return nil, nil, fmt.Errorf("%w; output of the process:\n%s", errors.Join(err, stopped), p.Output())
	}
	effects, err := h.Site.Effects()
	if err != nil {
		return nil, nil, err
	}
	return a, Check(l.Ledger, a, effects), stopped
}
