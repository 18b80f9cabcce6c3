package hostile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// mixed is the beginning of the name by which a child is asked for so many
// hostile and as many good calls at a time.
const mixed = "mixed/"

// Bounds of the mixed calls: four instances of 64 MiB at most, and stacks.
const (
	mixedPeak  = memoryFactor * 700 // MiB
	mixedBound = timeFactor * 2 * time.Minute
)

// TestHostileAndGoodCallsAtATime wants every good call to succeed.
func TestHostileAndGoodCallsAtATime(t *testing.T) {
	t.Parallel()
	count := 40
	if *everything {
		count = 1_000
	}
	p := startChild(t, []attack{{name: mixed + strconv.Itoa(count)}})
	defer p.stop()
	r, err := p.next(mixedBound)
	if err != nil {
		p.stop()
		t.Fatalf("%v\n%s", err, p.lastWords())
	}
	t.Logf("%d hostile and %d good calls in %v, %d MiB; endings: %s", count, count, r.Slowest.Round(time.Millisecond), r.Peak, strings.Join(r.Endings, ", "))
	for _, problem := range slices.Concat(r.Problems, r.Delays) {
		t.Error(problem)
	}
}

// mixedCalls is what a child needs for them.
type mixedCalls struct {
	host *host.Host
	mu   sync.Mutex
	report
}

func runMixed(ctx context.Context, count string) *report {
	n, err := strconv.Atoi(count)
	m := &mixedCalls{report: report{Name: mixed + count}}
	m.complain(err)
	c := &child{source: host.NewMemorySource()}
	m.host, err = host.New(ctx, host.Config{Modules: c.source, Instances: 4, Limits: run.Limits{Memory: 64 * mebi}, CompileCommand: compileCommand()})
	if err != nil {
		m.complain(err)
		return &m.report
	}
	resetPeak()
	started := time.Now()
	m.run(ctx, c, n)
	m.Slowest = time.Since(started)
	m.complain(m.host.Close(ctx))
	if m.Peak = peak(); m.Peak > mixedPeak {
		m.complain(fmt.Errorf("it took %d MiB, bound %d", m.Peak, mixedPeak))
	}
	return &m.report
}

// run makes n hostile calls and n good ones, eight of each at a time. The good
// ones have a minute, as they wait for the others.
func (m *mixedCalls) run(ctx context.Context, c *child, n int) {
	var bad, good []run.Call
	var wants []string
	for _, a := range corpus() {
		if !isMixable(a) {
			continue
		}
		digest := c.keep(ctx, a.module())
		a.deadline, a.limits = 20*time.Millisecond, run.Limits{}
		for _, s := range a.calls {
			call := callOf(digest, s.function, a)
			call.Task = a.name
			bad = append(bad, call)
			wants = append(wants, s.want+"|"+timesOut) // while it waits, too
		}
	}
	patient := attack{deadline: time.Minute}
	good = append(good, callOf(c.keep(ctx, goodModule("mixed")), "", patient), callOf(c.keep(ctx, spoiler()), "check", patient))
	for _, call := range append(bad, good...) {
		m.host.SignatureOf(ctx, call.Module) // prepares it
	}
	var calls sync.WaitGroup
	const callers = 8
	for caller := range callers {
		calls.Go(func() {
			for i := caller; i < n; i += callers {
				m.call(ctx, bad[i%len(bad)], wants[i%len(bad)])
			}
		})
		calls.Go(func() {
			for i := caller; i < n; i += callers {
				m.call(ctx, good[i%len(good)], succeeds)
			}
		})
	}
	calls.Wait()
}

// isMixable leaves out what takes longer than its deadline by its nature, and guests that
// begin with more memory than the host of the mixed calls allows.
func isMixable(a attack) bool {
	kind, _, _ := strings.Cut(a.name, "/")
	return !a.slow && !a.granted && !slices.Contains([]string{"compile", "manifest", "decode", "yield"}, kind)
}

func (m *mixedCalls) call(ctx context.Context, call run.Call, want string) {
	var r report
	r.call(ctx, m.host, call, want, time.Minute)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, problem := range slices.Concat(r.Problems, r.Delays) {
		m.Problems = append(m.Problems, call.Task+": "+problem)
	}
	for _, ending := range r.Endings {
		m.note(ending)
	}
}
