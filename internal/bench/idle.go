package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// How an idle host is measured: it is started a second time, so that its modules
// are compiled already, left alone until what the start has left behind is gone,
// and then watched for some time. Nothing is asked of it.
const (
	idleFlows  = 100
	idleSettle = 20 * time.Second
	idleWatch  = 30 * time.Second
)

// idleFiles are flows of two tasks, all of one module. Half of them wait for the
// new year and half for a message that never comes.
func idleFiles(module []byte) map[string][]byte {
	files := map[string][]byte{"guest.wasm": module}
	for n := range idleFlows {
		trigger := fmt.Sprintf("trigger \"message\" \"ask\" {\n    subject = \"bench.idle.%d\"\n  }", n)
		if n%2 == 1 {
			trigger = "trigger \"schedule\" \"yearly\" {\n    cron = \"0 0 1 1 *\"\n  }"
		}
		files[fmt.Sprintf("idle%03d.hcl", n)] = []byte(strings.NewReplacer("NUMBER", fmt.Sprint(n), "TRIGGER", trigger).Replace(idleFlow))
	}
	return files
}

const idleFlow = `flow "idle_NUMBER" {
  TRIGGER
  task "first" {
    plugin = "./guest.wasm"
    input  = { name = "bench" }
  }
  task "second" {
    plugin = "./guest.wasm"
    input  = { name = "bench" }
    after  = [task.first]
  }
}
`

func measureIdle(ctx context.Context, binary string, plugin []byte) error {
	for _, guest := range []struct {
		name   string
		module []byte
	}{{"tiny guest", tiny}, {"Go guest", plugin}} {
		if err := measureIdleGuest(ctx, binary, guest.name, guest.module); err != nil {
			return fmt.Errorf("%s: %w", guest.name, err)
		}
	}
	return nil
}

func measureIdleGuest(ctx context.Context, binary, name string, module []byte) (err error) {
	site, err := newSite(binary, idleFiles(module))
	if err != nil {
		return err
	}
	defer os.RemoveAll(site.dir)
	p, err := site.start(ctx)
	if err == nil {
		err = p.stop()
	}
	if err == nil {
		p, err = site.start(ctx)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := sleep(ctx, idleSettle); err != nil {
		return err
	}
	has, err := p.memory()
	if err != nil {
		return err
	}
	share, err := p.share(ctx, idleWatch)
	if err != nil {
		return err
	}
	fmt.Printf("%-11s resident memory, %d idle flows   %8.1f MB\n", name, idleFlows, mb(has.resident))
	fmt.Printf("%-11s of it in no file                 %8.1f MB\n", name, mb(has.own))
	fmt.Printf("%-11s share of a processor             %8.2f %%\n", name, 100*share)
	return nil
}

// measureFlows measures what a host of the flows in a directory has in memory before any
// call: after a start that compiles all modules, and after another one.
func measureFlows(ctx context.Context, binary, dir string) error {
	site, err := newSite(binary, nil)
	if err != nil {
		return err
	}
	defer os.RemoveAll(site.dir)
	site.flows, site.args = dir, []string{"--workers", "0"} // schedules make no calls
	for _, compiled := range []bool{false, true} {
		m, err := site.measured(ctx, func(*process, *started) error {
			if compiled {
				return nil
			}
			return site.logs(ctx, allCompiled)
		})
		if err != nil {
			return err
		}
		what := map[bool]string{false: "start that compiled", true: "warm start"}[compiled]
		fmt.Printf("resident memory, idle after a %-20s %8.1f MB, %.1f MB of it in no file\n", what, mb(m.idle.resident), mb(m.idle.own))
	}
	return nil
}

// share is how much of one processor the process uses for some time, 1 for all.
func (p *process) share(ctx context.Context, watch time.Duration) (float64, error) {
	begin := time.Now()
	before, err := p.processor()
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, watch); err != nil {
		return 0, err
	}
	after, err := p.processor()
	return float64(after-before) / float64(time.Since(begin)), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
