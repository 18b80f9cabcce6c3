package host_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/internal/wasm"
)

var compileMinutes = flag.Float64("compile.minutes", 0, "search so long for functions that are hard to compile")

// cost is what compiling a module took.
type cost struct {
	cpu    time.Duration
	memory int64 // bytes
}

// compileCost compiles a rewritten module in a process of its own.
func compileCost(t testing.TB, module []byte) (c cost, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], host.CompileArgument)
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	job, _ := json.Marshal(map[string]any{"Dir": t.TempDir(), "Size": len(module), "CPU": 100, "Memory": 6 << 30, "Code": 1 << 30})
	io.Copy(stdin, io.MultiReader(bytes.NewReader(append(job, '\n')), bytes.NewReader(module)))
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for done := false; !done; {
		c.memory = max(c.memory, peakOf(cmd.Process.Pid))
		select {
		case err = <-ended:
			done = true
		case <-time.After(2 * time.Millisecond):
		}
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		t.Logf("%v: %.300s", err, said.String())
	}
	return c, cmd.ProcessState.ExitCode()
}

// peakOf is the most memory that a process has had, in bytes; 0 where that cannot be
// known. What wait reports would be this process's own, if that is larger.
func peakOf(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kilobytes int64
	fmt.Sscan(string(rest), &kilobytes)
	return kilobytes << 10
}

// rewritten walks and rewrites a module as the host does.
func rewritten(module []byte) (*wasm.Rewritten, error) {
	m, err := wasm.Decode(module, wasm.Options{})
	if err != nil {
		return nil, err
	}
	return m.Rewrite(wasm.RewriteOptions{}), nil
}

// What compiling a module may take in the host's own process.
const (
	mostProcessCPU    = time.Second
	mostProcessMemory = 300 << 20
)

// largest gives the largest module of a shape that the host compiles in its own
// process, nil if there is none.
func largest(s shape) *wasm.Rewritten {
	var best *wasm.Rewritten
	low, high := 0, 1<<18 // low is known to fit
	for high-low > max(low/50, 1) {
		n := low + (high-low)/2
		if low < 1_000 {
			n = min(n, 2*low+100)
		}
		var m genModule
		s.build(&m, n)
		if r, err := rewritten(m.bytes()); err == nil && host.CompilesInProcess(r) {
			best, low = r, n
		} else {
			high = n
		}
	}
	return best
}

// TestForecastHolds compiles the largest module of every third shape that is compiled in
// the host's own process. With -compile.minutes it tries all and searches for worse ones.
// It is not parallel: it counts what processes take.
func TestForecastHolds(t *testing.T) {
	base, _ := compileCost(t, mustRewrite(t, noop().bytes()).Binary)
	try := func(s shape) float64 {
		r := largest(s)
		if r == nil {
			return 0
		}
		c, code := compileCost(t, r.Binary)
		if code != 0 {
			t.Errorf("%s: the generator makes modules that are not valid", s.name)
		}
		cpu, memory, f := c.cpu-base.cpu, c.memory-base.memory, r.Forecast()
		t.Logf("%-36s %7d bytes: %5d of %5d ms, %4d of %4d MiB", s.name, len(r.Binary), cpu.Milliseconds(), f.Work/1e6, memory>>20, f.Memory>>20)
		if cpu > mostProcessCPU || memory > mostProcessMemory {
			t.Errorf("%s is compiled in the host's process and takes %v of a processor and %d MiB", s.name, cpu, memory>>20)
		}
		return float64(cpu) / float64(f.Work)
	}
	for i, s := range shapes() {
		if i%3 == 0 || *compileMinutes > 0 {
			try(s)
		}
	}
	searchMixes(t, try)
}

// searchMixes climbs from random mixes to ones that take longer than forecast.
func searchMixes(t *testing.T, try func(shape) float64) {
	seed := uint64(1)
	if *compileMinutes > 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	most, tries, end := 0.0, 0, time.Now().Add(time.Duration(*compileMinutes*float64(time.Minute)))
	for tries < 5 || time.Now().Before(end) {
		best, locals := randomMix(random), 4<<random.IntN(9)
		worst := try(best.shape(locals))
		for failures := 0; failures < 6 && time.Now().Before(end); {
			next := best.mutated(random)
			if ratio := try(next.shape(locals)); ratio > worst {
				best, worst, failures = next, ratio, 0
			} else {
				failures++
			}
			tries++
		}
		tries++
		most = max(most, worst)
	}
	t.Logf("%d mixes, the worst takes %.2f of its forecast", tries, most)
}

func mustRewrite(t testing.TB, module []byte) *wasm.Rewritten {
	t.Helper()
	r, err := rewritten(module)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
