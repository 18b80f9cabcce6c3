package spectest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
)

// leastAssertions is a little less than what the suite has of assertions that
// are not about the text form, so that a suite that was cut short is noticed.
const leastAssertions = 51_000

var engines = []struct {
	name   string
	config wazero.RuntimeConfig
}{
	{"compiler", wazero.NewRuntimeConfigCompiler()},
	{"interpreter", wazero.NewRuntimeConfigInterpreter()},
}

// lenient is where wazero accepts what the suite wants refused, by script and
// line. Nothing of it reaches beyond the module.
var lenient = map[string][]int{
	// assert_uninstantiable, "out of bounds table access": an element segment that
	// does not fit is left out, and the instance is made all the same, as what
	// earlier segments put into an imported table has to stay alive anyhow.
	"elem":    {239, 248, 257, 266, 273, 281, 290, 298, 307, 315, 324, 332, 458, 484},
	"linking": {244, 267, 410},

	// assert_invalid, "constant expression required", and the last two of elem:
	// an initial value may come from an imported global that is mutable. No
	// instance can be made of these modules, as nobody provides that import; nor
	// does the host provide any global.
	"global": {371},
	"data":   {470, 496},
}

func isLenient(script string, line int) bool { return slices.Contains(lenient[script], line) }

// tally counts over all scripts of one configuration.
type tally struct {
	commands, assertions, deviations, interrupts int
}

type tallies struct {
	mu sync.Mutex
	of map[string]*tally
}

func TestRewritingChangesNothing(t *testing.T) {
	t.Parallel()
	sums := &tallies{of: map[string]*tally{}}
	t.Run("scripts", func(t *testing.T) {
		for _, path := range suite(t) {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
				t.Parallel()
				s := readScript(t, path)
				for _, e := range engines {
					plain := sums.run(t, s, e.name, e.config, false)
					rewritten := sums.run(t, s, e.name, e.config, true)
					compare(t, s, e.name, plain, rewritten)
				}
			})
		}
	})
	sums.check(t)
}

// run plays a script in one configuration.
func (s *tallies) run(t *testing.T, script *script, engine string, config wazero.RuntimeConfig, rewritten bool) []verdict {
	t.Helper()
	on, err := newStage(t.Context(), config, rewritten)
	if err != nil {
		t.Fatal(err)
	}
	defer on.runtime.Close(t.Context())
	verdicts := play(t.Context(), script, on)
	form := "plain"
	if rewritten {
		form = "rewritten"
	}
	s.add(fmt.Sprintf("%-11s %s", engine, form), script, on, verdicts)
	return verdicts
}

func (s *tallies) add(configuration string, script *script, on *stage, verdicts []verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.of[configuration]
	if sum == nil {
		sum = &tally{}
		s.of[configuration] = sum
	}
	sum.interrupts += on.interrupts
	for i, v := range verdicts {
		c := &script.Commands[i]
		if c.isText() {
			continue
		}
		sum.commands++
		if c.isAssertion() {
			sum.assertions++
		}
		if !v.passed {
			sum.deviations++
		}
	}
}

// compare holds the verdicts against what the suite wants, and against each other.
func compare(t *testing.T, s *script, engine string, plain, rewritten []verdict) {
	t.Helper()
	for i, c := range s.Commands {
		if t.Failed() {
			return // the first one of a script tells the most
		}
		place := fmt.Sprintf("%s.wast:%d %s (%s)", s.name, c.Line, c.Type, engine)
		if want := !isLenient(s.name, c.Line); plain[i].passed != want {
			t.Errorf("%s: passed %t, want %t: %s", place, plain[i].passed, want, plain[i].ending)
		}
		if rewritten[i] != plain[i] {
			t.Errorf("%s: %+v, rewritten %+v", place, plain[i], rewritten[i])
		}
	}
}

func (s *tallies) check(t *testing.T) {
	t.Helper()
	for configuration, sum := range s.of {
		t.Logf("%s: %+v", configuration, *sum)
		if rewritten := strings.HasSuffix(configuration, "rewritten"); rewritten != (sum.interrupts > 0) {
			t.Errorf("%s: guests were interrupted %d times", configuration, sum.interrupts)
		}
		if sum.assertions < leastAssertions {
			t.Errorf("%s: only %d assertions were checked", configuration, sum.assertions)
		}
	}
}
