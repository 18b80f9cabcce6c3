package hostile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// attack is one of the corpus. Its fields state only what differs from the
// defaults.
type attack struct {
	name    string
	promise string // that it attacks
	flows   string // flow file of the attacker, deployed from the start

	// prepare happens before the probes run: what is to be met by a host that
	// starts.
	prepare func(context.Context, *stage) error

	// run attacks, and returns when the attacker has gone. An error reports that the
	// attack itself could not be made.
	run func(context.Context, *stage) error

	// refused: new connections may be refused until the attacker has gone.
	refused bool

	stop  time.Duration // how long others may be stopped; default mostStop
	peak  int64         // bound of resident memory in MiB; default 512
	short bool          // part of the sample
}

const (
	mostStop    = 250 * time.Millisecond // beyond the quiet moment's
	defaultPeak = 512
	beforehand  = 15               // runs of the honest flow in a quiet moment
	afterwards  = 5                // runs of it once the attacker has gone
	longAttack  = 30 * time.Second // after which the attacker gives up
)

// corpus is all attacks.
func corpus() []attack {
	return slices.Concat(messages(), restarts(), requests(), clients(), protocol(), replies(), modules(), deployments())
}

// TestAttacks makes the attacks, one after the other: they are measured.
func TestAttacks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory and processor time of another process are read from /proc")
	}
	seen := map[string]bool{}
	for _, a := range corpus() {
		if seen[a.name] {
			t.Fatalf("two attacks have the name %q", a.name)
		}
		seen[a.name] = true
		a.peak = cmp.Or(a.peak, defaultPeak)
		if chosen(a.name, a.short) {
			t.Run(a.name, func(t *testing.T) { try(t, a) })
		}
	}
}

// try makes an attack until it stops nobody, a few times at most.
func try(t *testing.T, a attack) {
	for n := 1; ; n++ {
		m, err := a.measure(t)
		if m != nil {
			t.Log(m)
		}
		if err != nil {
			t.Errorf("%s (%s): %v", a.name, a.promise, err)
			return
		}
		stops := m.stops(a)
		if len(stops) == 0 {
			return
		}
		t.Logf("%s\nlast words of the host:\n%s", strings.Join(stops, "\n"), m.words)
		if n >= *tries {
			t.Errorf("%s (%s): %s, each of %d times", a.name, a.promise, strings.Join(stops, "; "), n)
			return
		}
	}
}

// measurement is an attack's.
type measurement struct {
	name          string
	quiet, attack figures
	slot          time.Duration // from when the attacker had gone to an honest run's result
	words         string        // that the host wrote last
}

// String is the row of the table.
func (m *measurement) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond)) }
	pair := func(of func(figures) time.Duration) string { return ms(of(m.quiet)) + " > " + ms(of(m.attack)) }
	return fmt.Sprintf("%-44s neighbour p50 %9s, max %11s | api %11s | connect %11s | collector %9s | slot %5s ms | %4d MiB | %.1f cpu | own %s",
		m.name,
		pair(func(f figures) time.Duration { return f.Neighbour.median() }),
		pair(func(f figures) time.Duration { return f.Neighbour.max() }),
		pair(func(f figures) time.Duration { return f.API.max() }),
		pair(func(f figures) time.Duration { return f.Connect.max() }),
		pair(func(f figures) time.Duration { return f.Collector }),
		ms(m.slot), m.attack.Peak, m.attack.CPU, ms(m.attack.Own.max()))
}

// stops is what took too long, was refused, or took too much memory.
func (m *measurement) stops(a attack) (found []string) {
	noise := max(m.quiet.Own.max(), m.attack.Own.max())
	late := func(what string, took, quiet time.Duration) {
		if took > quiet+noise+cmp.Or(a.stop, mostStop) {
			found = append(found, fmt.Sprintf("%s took %v, %v without the attack", what, took.Round(time.Millisecond), quiet.Round(time.Millisecond)))
		}
	}
	late("a run of the honest flow", m.attack.Neighbour.max(), m.quiet.Neighbour.max())
	late("an answer of the API", m.attack.API.max(), m.quiet.API.max())
	late("a connection", m.attack.Connect.max(), m.quiet.Connect.max())
	late("a pause of the collector", m.attack.Collector, m.quiet.Collector)
	late("a result once the attacker had gone", m.slot, m.quiet.Neighbour.max())
	for _, g := range []struct {
		what string
		gauge
	}{{"the honest flow", m.attack.Neighbour}, {"the API", m.attack.API}, {"a connection", m.attack.Connect}} {
		if g.fault != nil && !(a.refused && g.what == "a connection") {
			found = append(found, fmt.Sprintf("%s: %v", g.what, g.fault))
		}
	}
	if m.attack.Peak > a.peak {
		found = append(found, fmt.Sprintf("%d MiB of memory, bound %d", m.attack.Peak, a.peak))
	}
	return found
}

// measure makes the attack on a new host. It fails when something got lost.
func (a attack) measure(t *testing.T) (m *measurement, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp(t.TempDir(), "stage")
	if err != nil {
		return nil, err
	}
	s, err := newStage(ctx, dir, a.flows)
	if err != nil {
		if s != nil {
			s.kill()
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			s.kill()
		}
		if end := s.close(); err == nil && end != nil {
			err = fmt.Errorf("the host does not stop: %w", end)
		}
		os.RemoveAll(filepath.Join(dir, "data"))
	}()
	run, err := s.honest(ctx, s.operator, 0) // the first one prepares the module
	if err != nil {
		return nil, err
	}
	m = &measurement{name: a.name}
	if m.quiet, err = s.measure(ctx, func(context.Context, *stage) error { return nil }, beforehand, nil); err != nil {
		return m, err
	}
	if a.prepare != nil {
		if err := a.prepare(ctx, s); err != nil {
			return m, fmt.Errorf("before the attack: %w", err)
		}
	}
	m.attack, err = s.measure(ctx, a.run, afterwards, &m.slot)
	m.words = s.lastWords()
	if err == nil {
		err = s.admits(ctx)
	}
	return m, errors.Join(err, s.alive(), s.remembers(ctx, run), s.settled(ctx))
}

// measure probes while something happens, and until so many honest runs afterwards.
func (s *stage) measure(ctx context.Context, what func(context.Context, *stage) error, answers int, slot *time.Duration) (figures, error) {
	_, from := s.pauses(0)
	p := s.probe(ctx)
	attacking, cancel := context.WithTimeout(ctx, longAttack)
	err := what(attacking, s)
	if attacking.Err() != nil && ctx.Err() == nil {
		err = nil // the attacker gave up
	}
	cancel()
	if slot != nil {
		asking, cancel := context.WithTimeout(ctx, patience)
		gone, used := time.Now(), processorTime(s.process.Pid())
		_, fault := s.honest(asking, s.operator, -1)
		cancel()
		var g gauge
		g.add(time.Since(gone), processorTime(s.process.Pid())-used)
		if *slot = g.max(); fault != nil && !s.hasEnded() {
			*slot = patience // it was refused
		}
	}
	p.await(ctx, answers)
	f := p.end()
	f.Collector, _ = s.pauses(from)
	return f, err
}
