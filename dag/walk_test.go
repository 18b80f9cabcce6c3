package dag

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var errBroken = errors.New("broken")

// graph is build and Build.
func graph(t *testing.T, nodes, edges string) *Graph {
	t.Helper()
	g, err := build(t, nodes, edges).Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// ends is a function that ends nodes as their ids say: f… fails, p… panics, g…
// ends its goroutine, s… skips, others succeed.
func ends(g *Graph) Func[int] {
	return func(_ context.Context, i int) error {
		switch g.ID(i)[0] {
		case 'f':
			return errBroken
		case 'p':
			panic(errBroken)
		case 'g':
			runtime.Goexit()
		case 's':
			return ErrSkip
		}
		return nil
	}
}

// states writes a result as "a:succeeded b:failed".
func states(g *Graph, r *Result) string {
	var out []string
	for i := range g.Len() {
		out = append(out, g.ID(i)+":"+strings.ReplaceAll(r.State(i).String(), " ", "-"))
	}
	return strings.Join(out, " ")
}

func TestWalkStates(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, nodes, edges, want, failed string }{
		{"nothing", "", "", "", ""},
		{"all", "a b c", "a>b b>c", "a:succeeded b:succeeded c:succeeded", ""},
		{"failure", "a f b c d", "a>f f>b b>c a>d", "a:succeeded f:failed b:skipped c:skipped d:succeeded", "f"},
		{"panic", "p b c", "p>b", "p:failed b:skipped c:succeeded", "p"},
		{"goroutine ended", "g b c", "g>b", "g:failed b:skipped c:succeeded", "g"},
		{"skip", "s b c d", "s>b b>c", "s:skipped b:skipped c:skipped d:succeeded", ""},
		{"one of two upstream", "f a b", "f>b a>b", "f:failed a:succeeded b:skipped", "f"},
		{"two failures", "f2 f1 b", "f1>b f2>b", "f2:failed f1:failed b:skipped", "f2 f1"},
		{"all ways to fail", "g p f", "", "g:failed p:failed f:failed", "g p f"},
	}
	for _, tt := range tests {
		for _, workers := range []int{1, 3} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				g := graph(t, tt.nodes, tt.edges)
				r, err := g.Walk(t.Context(), ends(g), WalkOptions{KeepGoing: true, Workers: workers})
				if got := states(g, r); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if got := strings.Join(failedIn(err), " "); got != tt.failed {
					t.Errorf("failed %q, want %q: %v", got, tt.failed, err)
				}
			})
		}
	}
}

// failedIn are the ids of the NodeErrors that err joins.
func failedIn(err error) []string {
	var ids []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			ids = append(ids, failedIn(e)...)
		}
	}
	if node, ok := err.(*NodeError); ok {
		ids = append(ids, node.ID)
	}
	return ids
}

func TestWalkStopsAtFirstError(t *testing.T) {
	t.Parallel()
	g := graph(t, "a b waits c", "a>b waits>c")
	waiting := make(chan struct{})
	var cause error
	r, err := g.Walk(t.Context(), func(ctx context.Context, i int) error {
		switch g.ID(i) {
		case "waits":
			close(waiting)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		case "a":
			<-waiting
			return errBroken
		}
		return nil
	}, WalkOptions{Workers: 2})
	var node *NodeError
	if !errors.As(err, &node) || node.ID != "a" || !errors.Is(err, errBroken) || cause != err {
		t.Errorf("error %v, cause %v", err, cause)
	}
	if got := states(g, r); got != "a:failed b:skipped waits:canceled c:not-run" {
		t.Error(got)
	}
}

// What happens after the first failure does not hide it: neither another failure
// nor the end of the caller's context.
func TestWalkFirstErrorStaysFirst(t *testing.T) {
	t.Parallel()
	g := graph(t, "a waits c", "")
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan struct{})
	_, err := g.Walk(ctx, func(ctx context.Context, i int) error {
		if g.ID(i) == "a" {
			<-waiting
			return errBroken
		}
		close(waiting)
		<-ctx.Done()
		cancel()
		return errors.New("broken by the stop")
	}, WalkOptions{Workers: 2})
	if ids := failedIn(err); !slices.Equal(ids, []string{"a"}) || !errors.Is(err, errBroken) || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWalkEndOfContext(t *testing.T) {
	t.Parallel()
	reason := errors.New("enough")
	tests := []struct {
		name      string
		nodeSays  func(ctx context.Context) error
		keepGoing bool
		want      string
	}{
		{"gives up", context.Cause, false, "a:canceled b:not-run"},
		{"gives up with the plain error", context.Context.Err, true, "a:canceled b:not-run"},
		{"finishes", func(context.Context) error { return nil }, false, "a:succeeded b:not-run"},
		{"fails", func(context.Context) error { return errBroken }, false, "a:failed b:skipped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			g := graph(t, "a b", "a>b")
			r, err := g.Walk(ctx, func(ctx context.Context, i int) error {
				cancel(reason)
				return tt.nodeSays(ctx)
			}, WalkOptions{KeepGoing: tt.keepGoing})
			if got := states(g, r); got != tt.want {
				t.Error(got)
			}
			if errors.Is(err, reason) == (tt.name == "fails") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestWalkContextEndedBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := graph(t, "a b", "")
	r, err := g.Walk(ctx, func(context.Context, int) error { panic("started") }, WalkOptions{})
	if err != context.Canceled || r.Count(NotRun) != 2 {
		t.Errorf("%v, %s", err, states(g, r))
	}
}

// The end of the context changes nothing for a walk that has done all by then.
func TestWalkContextEndsWithLastNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := graph(t, "a", "").Walk(ctx, func(context.Context, int) error { cancel(); return nil }, WalkOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestWalkCanceledAndFailed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g := graph(t, "f a", "")
	_, err := g.Walk(ctx, func(_ context.Context, i int) error { cancel(); return errBroken }, WalkOptions{KeepGoing: true, Workers: 1})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errBroken) {
		t.Errorf("%v must be both", err)
	}
}

func TestWalkPanic(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"text", errBroken, ErrSkip, context.Canceled} {
		g := graph(t, "a", "")
		r, err := g.Walk(t.Context(), func(context.Context, int) error { panic(value) }, WalkOptions{})
		var p *PanicError
		if !errors.As(err, &p) || p.Value != value || !strings.Contains(string(p.Stack), "TestWalkPanic") {
			t.Errorf("panic(%v): %v", value, err)
		}
		if inner, ok := value.(error); ok && !errors.Is(err, inner) {
			t.Errorf("%v is not %v", err, inner)
		}
		if r.State(0) != Failed || r.Err(0) != error(p) {
			t.Errorf("panic(%v): %v, %v", value, r.State(0), r.Err(0))
		}
	}
}

func TestWalkSkippedBy(t *testing.T) {
	t.Parallel()
	g := graph(t, "ok s b c f", "ok>b s>b b>c")
	r, _ := g.Walk(t.Context(), ends(g), WalkOptions{KeepGoing: true})
	for id, want := range map[string]string{"s": "s", "b": "s", "c": "s"} {
		i, _ := g.Index(id)
		if by, ok := r.SkippedBy(i); !ok || g.ID(by) != want {
			t.Errorf("%s was skipped by %s, %v", id, g.ID(by), ok)
		}
	}
	for _, i := range []int{0, 4} {
		if by, ok := r.SkippedBy(i); ok {
			t.Errorf("%s (%v) was skipped by %s", g.ID(i), r.State(i), g.ID(by))
		}
	}
	if err := r.Err(1); err != ErrSkip {
		t.Errorf("error of the node that skips: %v", err)
	}
}

func TestWalkHooks(t *testing.T) {
	t.Parallel()
	g := graph(t, "a f b p c", "a>f f>b f>p")
	var log []string // one worker: no lock
	_, err := g.Walk(t.Context(), ends(g), WalkOptions{
		Workers: 1, KeepGoing: true,
		Before: func(i int) { log = append(log, "+"+g.ID(i)) },
		After: func(i int, err error) {
			log = append(log, "-"+g.ID(i))
			if (err != nil) != (g.ID(i) == "f") {
				t.Errorf("%s ended with %v", g.ID(i), err)
			}
		},
	})
	if got := strings.Join(log, " "); got != "+a -a +f -f +c -c" {
		t.Error(got)
	}
	if ids := failedIn(err); !slices.Equal(ids, []string{"f"}) {
		t.Error(ids)
	}
}

func TestWalkHooksOfPanic(t *testing.T) {
	t.Parallel()
	g := graph(t, "p", "")
	told := false
	r, _ := g.Walk(t.Context(), ends(g), WalkOptions{After: func(_ int, err error) { told = errors.As(err, new(*PanicError)) }})
	if !told || r.State(0) != Failed {
		t.Errorf("told %v, %v", told, r.State(0))
	}
	r, err := g.Walk(t.Context(), func(context.Context, int) error { return nil }, WalkOptions{After: func(int, error) { panic("in the hook") }})
	if !errors.As(err, new(*PanicError)) || r.State(0) != Failed {
		t.Errorf("hook that panics: %v, %v", r.State(0), err)
	}
}

func TestWalkRefusesOptions(t *testing.T) {
	t.Parallel()
	g := graph(t, "a b", "")
	for option, o := range map[string]WalkOptions{
		"Workers": {Workers: -1},
		"Weight":  {Weight: func(i int) time.Duration { return time.Duration(-i) }},
	} {
		r, err := g.Walk(t.Context(), func(context.Context, int) error { panic("started") }, o)
		var refused *OptionError
		if !errors.As(err, &refused) || refused.Option != option || r.Count(NotRun) != 2 {
			t.Errorf("%s: %v", option, err)
		}
	}
}

func TestWalkLongestFirst(t *testing.T) {
	t.Parallel()
	const nodes, edges = "x a b long1 long2 long3 c", "long1>long2 long2>long3 b>c"
	heavy := func(weights map[string]time.Duration) func(*Graph) func(int) time.Duration {
		return func(g *Graph) func(int) time.Duration {
			return func(i int) time.Duration { return weights[g.ID(i)] }
		}
	}
	tests := []struct {
		name   string
		weight func(*Graph) func(int) time.Duration
		want   string
	}{
		{"by nodes", nil, "long1 long2 b c x a long3"},
		{"by weight", heavy(map[string]time.Duration{"x": 5, "c": 6, "long3": 1, "a": 9}), "a b c x long1 long2 long3"},
		{"nothing weighs anything", heavy(nil), "x a b c long1 long2 long3"},
		{"sums past the largest duration", heavy(map[string]time.Duration{"c": math.MaxInt64, "b": 1, "long2": 7}), "b c long1 long2 long3 x a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := graph(t, nodes, edges)
			o := WalkOptions{Workers: 1}
			if tt.weight != nil {
				o.Weight = tt.weight(g)
			}
			var order []int
			if _, err := g.Walk(t.Context(), func(_ context.Context, i int) error { order = append(order, i); return nil }, o); err != nil {
				t.Fatal(err)
			}
			if got := names(g, order); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// One walk sees what its functions did upstream; walks over one graph do not see
// each other.
func TestWalksOverOneGraph(t *testing.T) {
	t.Parallel()
	g, err := shapes()[2].make(500).Build()
	if err != nil {
		t.Fatal(err)
	}
	var walks sync.WaitGroup
	for range 4 {
		walks.Go(func() {
			depth := make([]int32, g.Len()) // written without a lock
			_, err := g.Walk(t.Context(), func(_ context.Context, i int) error {
				for _, up := range g.Upstream(i) {
					depth[i] = max(depth[i], depth[up])
				}
				depth[i]++
				return nil
			}, WalkOptions{Workers: 3})
			if err != nil || slices.Max(depth) != slices.Max(g.height) {
				t.Errorf("depth %d of %d, %v", slices.Max(depth), slices.Max(g.height), err)
			}
		})
	}
	walks.Wait()
}

// Of the nodes that one unblocks, the one with the longest way goes first.
func TestWalkLongestOfUnblocked(t *testing.T) {
	t.Parallel()
	g := graph(t, "root x long1 y long2", "root>x root>long1 root>y long1>long2")
	var order []int
	if _, err := g.Walk(t.Context(), func(_ context.Context, i int) error { order = append(order, i); return nil }, WalkOptions{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if got := names(g, order); got != "root long1 long2 x y" {
		t.Error(got)
	}
}

func TestStateString(t *testing.T) {
	t.Parallel()
	if got := State(9).String(); got != "State(9)" {
		t.Error(got)
	}
}
