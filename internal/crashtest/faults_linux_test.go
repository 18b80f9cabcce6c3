//go:build faults

package crashtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/crashtest"
)

// The faults come to a host that stays up. It must say clearly that it takes
// nothing, lose nothing, and continue without help once the cause is gone.

// recovery is how long a host may take to continue.
const recovery = 90 * time.Second

// TestFullDisk takes the room from a host under load, twice, and gives it back.
func TestFullDisk(t *testing.T) {
	for _, mode := range []string{"strict", "relaxed"} {
		t.Run(mode, func(t *testing.T) {
			g := onDisk(t, 1<<30, "--durability", mode)
			s := serve(t, g.Host, &crashtest.Load{Bulk: 0.2})
			for range 2 {
				accepts(t, s)
				pause(t, 2*time.Second)
				if err := g.disk.Fill(); err != nil {
					t.Fatal(err)
				}
				refuses(t, s, "full")
				pause(t, 5*time.Second)
				if err := g.disk.Empty(); err != nil {
					t.Fatal(err)
				}
			}
			accepts(t, s)
			finish(t, s)
		})
	}
}

// TestSlowDisk makes each fsync take 50 ms: everything is slow, and continues.
func TestSlowDisk(t *testing.T) {
	s := serve(t, embedded(t), &crashtest.Load{Rate: 50})
	end := inject(t, s, "delay_enter=50ms")
	pause(t, 10*time.Second)
	accepts(t, s)
	end()
	finish(t, s)
}

// TestStuckDisk makes fsyncs take longer than a commit may: the host takes nothing
// meanwhile.
func TestStuckDisk(t *testing.T) {
	s := serve(t, embedded(t), &crashtest.Load{})
	accepts(t, s)
	end := inject(t, s, "delay_enter=20s")
	refuses(t, s, "")
	end()
	accepts(t, s)
	finish(t, s)
}

// TestBrokenDisk lets fsyncs fail: one, some, and all of them for a while. The
// embedded server has to be started again, so there is not always somebody who can
// refuse.
func TestBrokenDisk(t *testing.T) {
	for _, fault := range []string{"error=EIO:when=1", "error=EIO:when=1+5", "error=EIO"} {
		t.Run(fault, func(t *testing.T) {
			s := serve(t, embedded(t), &crashtest.Load{})
			accepts(t, s)
			end := inject(t, s, fault)
			broken, cancel := context.WithTimeout(t.Context(), recovery)
			defer cancel()
			if err := s.Process.Await(broken, "input/output error"); err != nil {
				t.Fatal(err)
			}
			until(t, s, "runs are not accepted", func(refused *crashtest.Refusal, err error) bool { return refused != nil || err != nil })
			pause(t, 5*time.Second)
			end()
			accepts(t, s)
			pause(t, 5*time.Second)
			finish(t, s)
		})
	}
}

// TestServerEnds kills the NATS server in the middle of commits and starts it
// again, at once and after a while.
func TestServerEnds(t *testing.T) {
	h, r := external(t), rand.New(rand.NewPCG(newSeed(t), 3))
	s := serve(t, h, &crashtest.Load{})
	for range 10 {
		accepts(t, s)
		pause(t, time.Duration(r.IntN(1000))*time.Millisecond)
		h.Cluster.Nodes[0].Kill()
		pause(t, time.Duration(r.IntN(3000))*time.Millisecond)
		if err := h.Cluster.Nodes[0].Start(); err != nil {
			t.Fatal(err)
		}
	}
	accepts(t, s)
	finish(t, s)
}

// TestServerHangs stops the NATS server for longer than an append waits.
func TestServerHangs(t *testing.T) {
	h := external(t)
	s := serve(t, h, &crashtest.Load{})
	for _, d := range []time.Duration{time.Second, 8 * time.Second, 15 * time.Second} {
		accepts(t, s)
		pause(t, time.Second)
		h.Cluster.Nodes[0].Process().Signal(syscall.SIGSTOP)
		pause(t, d)
		h.Cluster.Nodes[0].Process().Signal(syscall.SIGCONT)
	}
	accepts(t, s)
	finish(t, s)
}

// external is a host on one NATS server.
func external(t *testing.T) *crashtest.Host {
	t.Helper()
	c, err := crashtest.NewCluster(t.Context(), t.TempDir(), t.TempDir(), 1, "always")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return &crashtest.Host{
		Program: built.program, Site: newSite(t, busy), Data: filepath.Join(t.TempDir(), "data"),
		Args: []string{"--nats", c.URL()}, Cluster: c,
	}
}

// inject puts a fault into the fsyncs of the service's process, by strace(1) and
// its expression for inject without the name of the call, until end is called.
// Counts of calls are those of each thread.
func inject(t *testing.T, s *crashtest.Service, fault string) (end func()) {
	t.Helper()
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:"+fault, "-p", strconv.Itoa(s.Process.Pid()))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil && cmd.ProcessState.Exited() {
			t.Errorf("strace: %v", err)
		}
	})
}

func serve(t *testing.T, h *crashtest.Host, l *crashtest.Load) *crashtest.Service {
	t.Helper()
	l.Ledger, l.Name, l.Seed = &crashtest.Ledger{}, "f", newSeed(t)
	s, err := crashtest.Serve(t.Context(), h, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Process.Kill)
	return s
}

// finish reports what does not hold at the end.
func finish(t *testing.T, s *crashtest.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	a, found, err := s.Settle(ctx)
	if err != nil {
		t.Fatal(err)
	}
	report(t, s.Load.Ledger, a, found)
}

// accepts waits until the host accepts a run.
func accepts(t *testing.T, s *crashtest.Service) {
	t.Helper()
	began := time.Now()
	until(t, s, "a run is accepted", func(refused *crashtest.Refusal, err error) bool { return refused == nil && err == nil })
	t.Logf("a run was accepted after %s", time.Since(began).Round(time.Millisecond))
}

// refuses waits until the host says, with the text, that it can take nothing now.
func refuses(t *testing.T, s *crashtest.Service, text string) {
	t.Helper()
	until(t, s, "runs are refused", func(refused *crashtest.Refusal, _ error) bool {
		if refused == nil || refused.Code != "unavailable" || !strings.Contains(refused.Message, text) {
			return false
		}
		t.Logf("the host says: %s", refused.Message)
		return true
	})
}

// until asks for runs until the answer is as expected.
func until(t *testing.T, s *crashtest.Service, what string, ok func(*crashtest.Refusal, error) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recovery)
	defer cancel()
	for {
		refused, err := s.Ask(ctx)
		if ok(refused, err) {
			return
		}
		select {
		case <-s.Process.Ended():
			t.Fatalf("the process has ended; it said:\n%s", s.Process.Output())
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; the last answer is %s, %v; the process said:\n%s", what, recovery, describe(refused), err, s.Process.Output())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func describe(r *crashtest.Refusal) string {
	if r == nil {
		return "that it was accepted"
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Message)
}

// pause lets the load continue for a while.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
