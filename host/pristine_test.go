package host_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/run"
)

// visits is how many calls of each guest see whether they are the first one.
// FLOWHOST_LONG=1 asks for the many that a release is tested with.
func visits() int {
	if os.Getenv("FLOWHOST_LONG") != "" {
		return 100_000
	}
	return 250
}

// TestEveryCallSeesTheWorldOfAFirstCall has guests of all kinds look at each byte
// of their memory and at all their other state, and then leave it as different as
// they can, in all the ways in which a call can end. Whatever one of them left
// behind, the next would tell.
func TestEveryCallSeesTheWorldOfAFirstCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 6})
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			v := &visitor{host: h, world: w, module: load(t, h, w.path(t)), first: firstWorld(t, w)}
			invoke(t, h, callOf(v.module, "mutate", `"return 1"`))
			chooseWay(t, h, v.module, memory.WayWatch) // which relies on more than the others
			const goroutines = 3
			var calls sync.WaitGroup
			for g := range goroutines {
				calls.Go(func() { v.visit(t, uint64(g), visits()/goroutines) })
			}
			calls.Wait()
			for _, end := range ends {
				if !t.Failed() && v.seen[end.word] == 0 {
					t.Errorf("no world was seen by a call that ends with %s", end.word)
				}
			}
			v.checkReuse(t)
		})
	}
}

// firstWorld is what the guest tells in the first call of a host.
func firstWorld(t *testing.T, w world) string {
	t.Helper()
	h := newHost(t, host.Config{Instances: 1})
	result := invoke(t, h, callOf(load(t, h, w.path(t)), "mutate", `"return 1"`))
	told, ok := toldWorld(result)
	if !ok {
		t.Fatalf("%s %v: the guest told nothing", result.Outcome, result.Failure)
	}
	if !w.alone {
		return told
	}
	bare, err := newBareInstance(t, w.path(t)).mutate(t, "return 1")
	if diff := cmp.Diff(split(t, bare), split(t, told)); diff != "" || err != nil {
		t.Errorf("the world in the host is another than that of a bare instance: %v\n%s", err, diff)
	}
	return told
}

func toldWorld(result run.Result) (string, bool) {
	for _, line := range result.Log.Lines {
		if line.Message == "world" {
			return string(line.Fields), true
		}
	}
	return "", false
}

// ends are the ways in which calls end, in parts of a thousand.
var ends = []struct {
	word  string
	share int
}{
	{"return", 400}, {"trap", 150}, {"exit", 100}, {"fail", 100}, {"deep", 80}, {"grow", 80}, {"wreck", 86}, {"loop", 4},
}

func anyEnd(random *rand.Rand) string {
	n := random.IntN(1000)
	i := slices.IndexFunc(ends, func(e struct {
		word  string
		share int
	}) bool {
		n -= e.share
		return n < 0
	})
	return ends[i].word
}

// visitor makes calls of one guest, from any number of goroutines.
type visitor struct {
	host   *host.Host
	world  world
	module string
	first  string

	mu   sync.Mutex
	seen map[string]int // worlds, by how the call ended
}

func (v *visitor) visit(t *testing.T, stream uint64, calls int) {
	random := rand.New(rand.NewPCG(1, stream))
	before := "nothing"
	for i := 0; i < calls && !t.Failed(); i++ {
		end, amount := anyEnd(random), random.IntN(1<<20)
		if i == calls/2 {
			end = "loop" // at least one
		}
		input := fmt.Sprintf("%s %d", end, amount)
		call := callOf(v.module, "mutate", `"`+input+`"`)
		if end == "loop" {
			call.Timeout = 150 * time.Millisecond
		}
		result, err := v.host.Invoke(t.Context(), call)
		if err != nil {
			t.Errorf("%s: %v", input, err)
			return
		}
		v.check(t, result, end, amount, fmt.Sprintf("call %d (%s) after %s", i, input, before))
		before = input
	}
}

func (v *visitor) check(t *testing.T, result run.Result, end string, amount int, what string) {
	outcome, code := v.expect(end, amount)
	if result.Outcome != outcome || result.Failure != nil && result.Failure.Code != code {
		t.Errorf("%s: %s %v, want %s %s", what, result.Outcome, result.Failure, outcome, code)
	}
	told, ok := toldWorld(result)
	if !ok && end == "loop" {
		return // its time was up before it began
	}
	if told != v.first {
		t.Errorf("%s: not the world of a first call:\n%s", what, cmp.Diff(v.first, told))
	}
	if outcome == run.OutcomeSucceeded && string(result.Output) != told {
		t.Errorf("%s: output %s", what, result.Output)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen == nil {
		v.seen = map[string]int{}
	}
	v.seen[end]++
}

// expect is how a call ends that was asked to end so.
func (v *visitor) expect(end string, amount int) (run.Outcome, string) {
	switch {
	case end == "trap", end == "wreck" && (amount%2 == 1 || v.world.name == "go"):
		return run.OutcomeTrapped, run.CodeTrap
	case end == "exit" && amount%3 != 0:
		return run.OutcomeTrapped, run.CodeExit
	case end == "fail":
		return run.OutcomeFailed, "asked"
	case end == "loop":
		return run.OutcomeTimedOut, run.CodeTimeout
	}
	return run.OutcomeSucceeded, ""
}

// checkReuse fails the test when it has seen new instances only, which prove little.
func (v *visitor) checkReuse(t *testing.T) {
	for _, m := range v.host.Stats().Modules {
		if m.Digest != v.module {
			continue
		}
		t.Logf("%s: made %d, reused %d, discarded %v", m.Sandbox.Strategy, m.Made, m.Reused, m.Discarded)
		if fresh := m.Sandbox.Strategy == host.StrategyFresh; fresh != v.world.fresh || !fresh && m.Reused < int64(visits()/10) {
			t.Errorf("%s %s: %d of %d calls had an instance that was used before", m.Sandbox.Strategy, m.Sandbox.Reason, m.Reused, visits())
		}
		return
	}
	t.Error("the host has no figures of the module")
}

// What the guests tell would give away what is left behind: in an instance that
// nobody puts back, all of it is different after two calls.
func TestWorldsTellWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	constant := map[string][]string{
		// The stack pointer and the tables have tests of their own below; a null
		// reference can become nothing else without a host that gives another.
		"c":       {"stack"},
		"tables":  {"word h", "word i", "word j", "word k", "word l", "word m"},
		"by hand": {"word j", "word k", "word l", "word m", "word n", "word o", "word p"},
	}
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			instance := newBareInstance(t, w.path(t))
			var told [3]string
			for i, input := range []string{"grow 16", "return 19", "return 16"} {
				var err error
				if told[i], err = instance.mutate(t, input); err != nil {
					t.Fatal(err)
				}
			}
			first, last := split(t, told[0]), split(t, told[2])
			for key, value := range first {
				if last[key] == value && !slices.Contains(constant[w.name], key) {
					t.Errorf("%s is %s in the first and the last call", key, value)
				}
			}
		})
	}
}

func TestWorldTellsOfALoweredStackPointer(t *testing.T) {
	t.Parallel()
	instance := newBareInstance(t, kept("c/world")(t))
	first, _ := instance.mutate(t, "trap 1")
	second, _ := instance.mutate(t, "trap 1")
	if a, b := split(t, first)["stack"], split(t, second)["stack"]; a == b {
		t.Errorf("the stack pointer is %s in both calls", a)
	}
}

// The first amounts name what tables and segments suffer.
func TestWorldTellsOfTablesAndSegments(t *testing.T) {
	t.Parallel()
	tables := func(told string) string {
		words := strings.Split(told, ",")
		return strings.Join(words[min(7, len(words)):], ",") // behind memory and globals
	}
	for amount := range 7 {
		instance := newBareInstance(t, kept("wat/tables")(t))
		first, err := instance.mutate(t, fmt.Sprintf("return %d", amount))
		if err != nil {
			t.Fatal(err)
		}
		second, err := instance.mutate(t, "return 16") // looks at the segments too
		if err == nil && tables(first) == tables(second) {
			t.Errorf("after %d: %s in both calls", amount, tables(first))
		}
	}
}
