package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Paces of the probes.
const (
	askPace     = 20 * time.Millisecond
	connectPace = 100 * time.Millisecond
	ledgerPace  = 50 * time.Millisecond
	ownPace     = 5 * time.Millisecond
	lookPace    = 50 * time.Millisecond
)

// mostMemory in MiB is where a process is killed, whatever its attack allows.
const mostMemory = 2_500

// figures is what the probes saw.
type figures struct {
	Neighbour gauge // runs of the honest flow
	API       gauge
	Connect   gauge // new connections of clients
	Own       gauge // timers of the test itself: how busy the machine is
	Collector time.Duration
	Peak      int64   // MiB of resident memory
	CPU       float64 // processors in use
}

// gauge is how long something took that was asked for at a pace.
type gauge struct {
	all   []time.Duration
	fault error // the first one
}

// idleStop is how long a stop in which the host computes nothing may be taken for the
// machine's, or for its disk's.
const idleStop = 2 * time.Second

// add counts a stop in the processor's time of the host where that is less than the
// clock's, as far as it can be read: other processes of a busy machine do not count.
func (g *gauge) add(took, processor time.Duration) {
	if took < idleStop && processor >= 0 {
		took = min(took, processor+2*processorTick)
	}
	g.all = append(g.all, took)
}

func (g gauge) max() time.Duration {
	if len(g.all) == 0 {
		return 0
	}
	return slices.Max(g.all)
}

func (g gauge) median() time.Duration {
	if len(g.all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(g.all))[len(g.all)/2]
}

// probes is what runs beside an attack.
type probes struct {
	stage *stage
	seen  figures
	stop  chan struct{} // closed: nothing new is asked
	beats chan struct{} // one for each answer of the honest flow
	all   sync.WaitGroup
}

// ledger counts triggers that were published, and those of them that were
// acknowledged.
type ledger struct{ sent, acknowledged int }

// probe starts all probes. ctx ends what they wait for.
func (s *stage) probe(ctx context.Context) *probes {
	p := &probes{stage: s, stop: make(chan struct{}), beats: make(chan struct{}, 1)}
	n := 0
	p.measure(ctx, &p.seen.Neighbour, askPace, func(ctx context.Context) error {
		n++
		_, err := s.honest(ctx, s.operator, n)
		select {
		case p.beats <- struct{}{}:
		default:
		}
		return err
	})
	p.measure(ctx, &p.seen.API, askPace, func(ctx context.Context) error {
		_, err := ask[struct{ Runs []ended }](ctx, s.operator, "fh.v1.api.list", `{"limit":5}`, nil)
		return err
	})
	p.measure(ctx, &p.seen.Connect, connectPace, func(ctx context.Context) error {
		nc, err := s.client(ctx)
		if err == nil {
			nc.Close()
		}
		return err
	})
	p.all.Go(func() { p.timers(ctx) })
	p.measure(ctx, new(gauge), ledgerPace, p.trigger)
	p.all.Go(p.look)
	return p
}

// measure asks at a pace until the probes stop.
func (p *probes) measure(ctx context.Context, g *gauge, pace time.Duration, what func(context.Context) error) {
	p.all.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for due := time.Now(); ; due = time.Now().Add(pace) {
			timer.Reset(time.Until(due))
			select {
			case <-timer.C:
			case <-p.stop:
				return
			case <-ctx.Done():
				return
			}
			used := processorTime(p.stage.process.Pid())
			ctx, cancel := context.WithTimeout(ctx, patience)
			err := what(ctx)
			cancel()
			g.add(time.Since(due), processorTime(p.stage.process.Pid())-used)
			if g.fault == nil && err != nil && !p.stage.hasEnded() {
				g.fault = err
			}
		}
	})
}

// timers notes how late timers of the test are.
func (p *probes) timers(ctx context.Context) {
	timer := time.NewTimer(ownPace)
	defer timer.Stop()
	for due := time.Now().Add(ownPace); ; {
		select {
		case <-timer.C:
			p.seen.Own.all = append(p.seen.Own.all, time.Since(due))
			due = time.Now().Add(ownPace)
			timer.Reset(ownPace)
		case <-p.stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// trigger publishes one for the ledger.
func (p *probes) trigger(ctx context.Context) error {
	l := &p.stage.ledger
	l.sent++
	ack, err := ask[struct{ Stream string }](ctx, p.stage.operator, "fh.v1.trigger.ledger", fmt.Sprint(l.sent), nil)
	if err == nil && ack.Stream != "" {
		l.acknowledged++
	}
	return err
}

// look watches the memory of the process, and ends one that takes far too much.
func (p *probes) look() {
	s := p.stage
	s.resetPeak()
	started, used := time.Now(), processorTime(s.process.Pid())
	tick := time.NewTicker(lookPace)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if s.resident("VmRSS:") > mostMemory {
				s.process.Kill()
			}
			continue
		case <-s.process.Ended():
		case <-p.stop:
		}
		p.seen.Peak = s.resident("VmHWM:")
		p.seen.CPU = float64(processorTime(s.process.Pid())-used) / float64(time.Since(started))
		return
	}
}

// await returns when the honest flow has answered so many times, with an error or
// not.
func (p *probes) await(ctx context.Context, answers int) {
	for range answers {
		select {
		case <-p.beats:
		case <-p.stage.process.Ended():
			return
		case <-ctx.Done():
			return
		}
	}
}

// end stops the probes. What is under way counts, for as long as it takes.
func (p *probes) end() figures {
	close(p.stop)
	p.all.Wait()
	return p.seen
}

// statusOf is a field of a process's status in MiB, 0 where it cannot be known.
func statusOf(pid int, field string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte(field))
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
	n, _ := strconv.ParseInt(kilobytes, 10, 64)
	return n >> 10
}

// processorTick is the unit of Linux for it.
const processorTick = 10 * time.Millisecond

// processorTime is what a process has used so far, 0 where it cannot be known.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // the name may hold spaces
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * processorTick
}

// collection is a line of the runtime's gctrace; the first and the last of the
// three are pauses of the world, in milliseconds.
var collection = regexp.MustCompile(`gc \d+ @\S+ \S+: ([0-9.]+)\+[0-9.]+\+([0-9.]+) ms clock`)

// pauses is the longest pause of the world that the log tells of from an offset on.
func (s *stage) pauses(from int64) (longest time.Duration, to int64) {
	text, err := os.ReadFile(s.log())
	if err != nil || int64(len(text)) < from {
		return 0, from
	}
	for _, match := range collection.FindAllSubmatch(text[from:], -1) {
		for _, pause := range match[1:] {
			if ms, err := strconv.ParseFloat(string(pause), 64); err == nil {
				longest = max(longest, time.Duration(ms*float64(time.Millisecond)))
			}
		}
	}
	return longest, int64(len(text))
}

// settled waits until each acknowledged trigger has made a run, and none has made
// two.
func (s *stage) settled(ctx context.Context) error {
	l := s.ledger
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		runs, err := s.count(ctx, "ledger")
		if err == nil && runs > l.sent {
			return fmt.Errorf("%d triggers made %d runs", l.sent, runs)
		}
		if err == nil && runs >= l.acknowledged {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d triggers were acknowledged, %d runs made", l.acknowledged, runs), err)
		case <-time.After(askPace):
		}
	}
}

// count counts the runs of a flow.
func (s *stage) count(ctx context.Context, flow string) (n int, err error) {
	for before := ""; ; {
		page, err := ask[struct {
			Runs []ended
			Next string
		}](ctx, s.operator, "fh.v1.api.list", fmt.Sprintf(`{"flow":%q,"limit":1000,"before":%q}`, flow, before), nats.Header{})
		if err != nil {
			return n, err
		}
		n += len(page.Runs)
		if before = page.Next; before == "" {
			return n, nil
		}
	}
}
