package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
)

// environment names the cases that a child runs, one a line.
const environment = "FLOWHOST_HOSTILE_CASES"

// mostMemory in MiB is where a child is killed, whatever its case allows.
const mostMemory = memoryFactor * 2_500

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == host.CompileArgument {
		os.Exit(host.CompileChild(context.Background(), os.Stdin, os.Stderr))
	}
	if names := os.Getenv(environment); names != "" {
		if err := runChild(strings.Split(names, "\n"), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var (
	everything = flag.Bool("all", false, "run all cases, each in its own process")
	only       = flag.String("only", "", "run the cases whose names match this expression, each in its own process")
)

// TestCorpus runs the cases: the short selection in two processes, or all, each
// in its own.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, group := range groups(t, corpus()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for len(group) > 0 {
				group = group[runGroup(t, group):] // those after one in which the process ended
			}
		})
	}
}

// groups is which cases share a process.
func groups(t *testing.T, cases []attack) map[string][]attack {
	t.Helper()
	seen := map[string]bool{}
	groups := map[string][]attack{}
	for i, a := range cases {
		if seen[a.name] {
			t.Fatalf("two cases have the name %q", a.name)
		}
		seen[a.name] = true
		switch {
		case *only != "" && !regexp.MustCompile(*only).MatchString(a.name):
		case *everything || *only != "":
			groups[a.name] = []attack{a}
		case !a.slow:
			half := "half " + strconv.Itoa(i%2+1)
			groups[half] = append(groups[half], a)
		}
	}
	return groups
}

// tries is how often a case may take too long before that is its fault. A busy
// machine is late now and then; a true stop comes each time.
const tries = 3

// runGroup runs cases in a child until it ends, and gives how many that were. A
// case in which the child dies has failed, one that takes too long is run again in
// a process of its own.
func runGroup(t *testing.T, group []attack) int {
	t.Helper()
	done := 0
	var late []attack
	runChildOf(t, group, func(a attack, r *report) {
		done++
		if r != nil && len(r.Delays) > 0 {
			late = append(late, a)
			t.Logf("%s is run again: %s", a.name, strings.Join(r.Delays, "; "))
		}
	})
	for _, a := range late {
		runAlone(t, a)
	}
	return done
}

// runAlone runs a case that was late in a process of its own, until it is not.
func runAlone(t *testing.T, a attack) {
	t.Helper()
	var delays []string
	for try := 1; try < tries; try++ {
		runChildOf(t, []attack{a}, func(_ attack, r *report) {
			delays = nil
			if r != nil {
				delays = r.Delays
			}
		})
		if len(delays) == 0 {
			return
		}
	}
	for _, delay := range delays {
		t.Errorf("%s (%s): %s, each time it was tried", a.name, a.what, delay)
	}
}

// runChildOf runs cases in a child and hands out the report of each, nil for the
// one in which it died.
func runChildOf(t *testing.T, group []attack, hand func(attack, *report)) {
	t.Helper()
	p := startChild(t, group)
	defer p.stop()
	for _, a := range group {
		r, err := p.next(a.patience() + 10*time.Second)
		if err != nil {
			p.stop()
			t.Errorf("%s (%s): the process ended: %v\n%s", a.name, a.what, err, p.lastWords())
			hand(a, nil)
			return
		}
		t.Log(r.line())
		for _, problem := range r.Problems {
			t.Errorf("%s (%s): %s", a.name, a.what, problem)
		}
		hand(a, r)
	}
}

// line is the figures of a case: what it took, and the longest stops without and
// with it.
func (r *report) line() string {
	return fmt.Sprintf("%-32s %-24s prepared %6.1f ms, call %6.1f ms, late %5.1f ms, %4d MiB; "+
		"stops: neighbour %4.1f>%6.1f ms, collector %4.1f>%6.1f ms, world %4.1f>%6.1f ms, timers %4.1f>%6.1f ms",
		r.Name, strings.Join(r.Endings, ", "), milliseconds(r.Prepared), milliseconds(r.Slowest), milliseconds(r.Late), r.Peak,
		milliseconds(r.Quiet.Neighbour), milliseconds(r.Attack.Neighbour), milliseconds(r.Quiet.Collector), milliseconds(r.Attack.Collector),
		milliseconds(r.Quiet.World), milliseconds(r.Attack.World), milliseconds(r.Quiet.Timers), milliseconds(r.Attack.Timers))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// process is a running child.
type process struct {
	command *exec.Cmd
	kill    context.CancelCauseFunc
	context context.Context
	stderr  bytes.Buffer
	lines   chan []byte // closed at the child's end
}

func startChild(t *testing.T, group []attack) *process {
	t.Helper()
	var names []string
	for _, a := range group {
		names = append(names, a.name)
	}
	p := &process{lines: make(chan []byte)}
	p.context, p.kill = context.WithCancelCause(t.Context())
	p.command = exec.CommandContext(p.context, os.Args[0])
	p.command.Env = append(os.Environ(), environment+"="+strings.Join(names, "\n"), "GOTRACEBACK=single",
		"TMPDIR="+t.TempDir()) // which is removed even when the child is killed
	p.command.Stderr = &p.stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stdout)
	return p
}

// read hands out the child's reports until it ends.
func (p *process) read(stdout io.Reader) {
	defer close(p.lines)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		select {
		case p.lines <- slices.Clone(lines.Bytes()):
		case <-p.context.Done():
			return
		}
	}
}

// next waits for the report of the next case, and kills a child that takes too
// much time or memory.
func (p *process) next(patience time.Duration) (*report, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case line, running := <-p.lines:
			if !running {
				return nil, p.end(fmt.Errorf("it ended by itself"))
			}
			r := new(report)
			return r, json.Unmarshal(line, r)
		case <-late.C:
			return nil, p.end(fmt.Errorf("there was no answer within %v", patience))
		case <-look.C:
			if used := residentSet(strconv.Itoa(p.command.Process.Pid), "VmRSS:"); used > mostMemory {
				return nil, p.end(fmt.Errorf("it took %d MiB", used))
			}
		}
	}
}

// end kills the child and waits for it.
func (p *process) end(cause error) error {
	p.stop()
	return fmt.Errorf("%w (%s)", cause, p.command.ProcessState)
}

// stop ends the child, which may have ended already.
func (p *process) stop() {
	p.kill(nil)
	if p.command.ProcessState == nil {
		p.command.Wait() // reports that it was killed
	}
}

// lastWords is the beginning of what the child wrote on stderr.
func (p *process) lastWords() string {
	const most = 2_000
	return string(p.stderr.Bytes()[:min(p.stderr.Len(), most)])
}
