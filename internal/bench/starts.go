package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// variable is a text in every module that Go builds, which nothing prints here: a module
// differs from another one by what takes its place.
var variable = []byte("all goroutines are asleep - deadlock!")

// variant is a module like another one, with other bytes and other native code.
func variant(module []byte, n int) ([]byte, error) {
	at := bytes.Index(module, variable)
	if at < 0 {
		return nil, errors.New("the plugin is not a module that Go has built")
	}
	other := bytes.Clone(module)
	copy(other[at:], fmt.Sprintf("variant %028d", n))
	return other, nil
}

// startFiles are flows with a module each, of which no two are equal, and one with a small
// one that takes no time to compile.
func startFiles(module []byte, modules int) (map[string][]byte, error) {
	files := map[string][]byte{"tiny.wasm": tiny, "tiny.hcl": []byte(tinyFlow)}
	for n := range modules {
		other, err := variant(module, n)
		if err != nil {
			return nil, err
		}
		files[fmt.Sprintf("guest%d.wasm", n)] = other
		files[fmt.Sprintf("flow%d.hcl", n)] = []byte(strings.ReplaceAll(startFlow, "NUMBER", fmt.Sprint(n)))
	}
	return files, nil
}

const tinyFlow = `flow "tiny_guest" {
  trigger "message" "ask" {
    subject = "bench.tiny"
  }
  task "nothing" {
    plugin = "./tiny.wasm"
  }
}
`

const startFlow = `flow "go_guest_NUMBER" {
  trigger "message" "ask" {
    subject = "bench.go.NUMBER"
  }
  task "greet" {
    plugin = "./guestNUMBER.wasm"
    input  = { name = "bench" }
  }
}
`

// measureStarts measures starts with each number of different Go modules: the first one,
// for which nothing is compiled, and then others in turn with starts of a host that has
// the small module alone.
func measureStarts(ctx context.Context, binary string, plugin []byte, counts []int, starts int) error {
	bare, err := newStartSite(binary, plugin, 0)
	if err != nil {
		return err
	}
	defer os.RemoveAll(bare.dir)
	for range 2 { // as often as the others
		if _, err := bare.measure(ctx, 0); err != nil {
			return err
		}
	}
	for _, count := range counts {
		if err := measureStartsWith(ctx, bare, binary, plugin, count, starts); err != nil {
			return fmt.Errorf("%d modules: %w", count, err)
		}
	}
	return nil
}

func newStartSite(binary string, plugin []byte, modules int) (*site, error) {
	files, err := startFiles(plugin, modules)
	if err != nil {
		return nil, err
	}
	return newSite(binary, files)
}

// identitySettles is how long a file must be unchanged before a host knows it by its
// identity.
const identitySettles = 4 * time.Second

func measureStartsWith(ctx context.Context, bare *site, binary string, plugin []byte, count, starts int) error {
	full, err := newStartSite(binary, plugin, count)
	if err != nil {
		return err
	}
	defer os.RemoveAll(full.dir)
	cold, err := full.measureCold(ctx)
	if err != nil {
		return err
	}
	title := func(what string) string { return fmt.Sprintf("%3d Go modules, %s", count, what) }
	show := func(what, format string, figure ...any) {
		fmt.Printf("%-52s "+format+"\n", append([]any{title(what)}, figure...)...)
	}
	show("nothing compiled: first answer", "%8.1f ms", ms(cold.answer))
	show("  result of a small guest", "%8.1f ms", ms(cold.tiny))
	show("  then result of a Go guest", "%8.1f ms", ms(cold.guest))
	show("  all compiled", "%8.1f s", cold.compiled.Seconds())
	show("  then idle, resident", "%8.1f MB, %.1f MB of it in no file", mb(cold.idle.resident), mb(cold.idle.own))
	if err := sleep(ctx, identitySettles); err != nil {
		return err
	}
	if _, err := full.measure(ctx, count); err != nil { // the host learns the identities of the files
		return err
	}
	var none, warm []started
	for range starts {
		for _, s := range []struct {
			site  *site
			count int
			to    *[]started
		}{{bare, 0, &none}, {full, count, &warm}} {
			one, err := s.site.measure(ctx, s.count)
			if err != nil {
				return err
			}
			*s.to = append(*s.to, one)
		}
	}
	median := func(all []started, of func(started) time.Duration) time.Duration {
		var took []time.Duration
		for _, s := range all {
			took = append(took, of(s))
		}
		return quantile(took, 0.5)
	}
	answer, used := func(s started) time.Duration { return s.answer }, func(s started) time.Duration { return s.used }
	guest := func(s started) time.Duration { return s.guest }
	first, base := median(warm, answer), median(none, answer)
	show("all compiled: first answer", "%8.1f ms, %.2f times that without them, %.1f ms, medians of %d", ms(first), float64(first)/float64(base), ms(base), starts)
	show("  of processors until then", "%8.1f ms, %.1f ms without them", ms(median(warm, used)), ms(median(none, used)))
	tiny := func(s started) time.Duration { return s.tiny }
	show("  result of a small guest", "%8.1f ms", ms(median(warm, tiny)))
	show("  then result of a Go guest", "%8.1f ms", ms(median(warm, guest)))
	last := warm[len(warm)-1].idle
	show("  idle after a call of one, resident", "%8.1f MB, %.1f MB of it in no file", mb(last.resident), mb(last.own))
	return nil
}

// started is what one start took, from the start of the process.
type started struct {
	answer   time.Duration // to the first answer
	used     time.Duration // of processors until then
	tiny     time.Duration // to the result of a flow with a small guest
	guest    time.Duration // to that of a flow with a Go guest, which was asked after that
	compiled time.Duration
	idle     memoryUse
}

// allCompiled is in the log of a host that has compiled what was not.
const allCompiled = "all modules are compiled"

// settles is how long a host is left alone before its memory is read.
const settles = 2 * time.Second

// measure starts a host, asks for results of a small guest and of a Go guest, if there is
// any, and stops it. All sites record as many runs, which the next start reads.
func (s *site) measure(ctx context.Context, modules int) (started, error) {
	return s.measured(ctx, func(p *process, m *started) error {
		second := "bench.tiny"
		if modules > 0 {
			second = "bench.go.0"
		}
		return errors.Join(p.result(ctx, "bench.tiny", &m.tiny), p.result(ctx, second, &m.guest))
	})
}

// measureCold measures a start for which nothing is compiled.
func (s *site) measureCold(ctx context.Context) (started, error) {
	return s.measured(ctx, func(p *process, m *started) error {
		return errors.Join(
			p.result(ctx, "bench.tiny", &m.tiny), p.result(ctx, "bench.go.0", &m.guest),
			s.logs(ctx, allCompiled), p.since(&m.compiled),
		)
	})
}

func (s *site) measured(ctx context.Context, use func(*process, *started) error) (m started, err error) {
	p, err := s.start(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	m.answer, m.used = p.took, p.used
	if err := use(p, &m); err != nil {
		return m, err
	}
	if err := sleep(ctx, settles); err != nil {
		return m, err
	}
	m.idle, err = p.memory()
	return m, err
}

// result asks for the result of a flow, and notes when it came.
func (p *process) result(ctx context.Context, subject string, at *time.Duration) error {
	ask := trip{message: &nats.Msg{Subject: subject, Header: nats.Header{"Fh-Wait": {"60s"}}}}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := ask.make(ctx, p.nc)
	for errors.Is(err, nats.ErrNoResponders) { // the host answers before it listens to all triggers
		if err = sleep(ctx, time.Millisecond); err == nil {
			err = ask.make(ctx, p.nc)
		}
	}
	p.since(at)
	return err
}

func (p *process) since(at *time.Duration) error {
	*at = time.Since(p.began)
	return nil
}

// logs waits until the host has logged a text.
func (s *site) logs(ctx context.Context, text string) error {
	for {
		log, err := os.ReadFile(s.log())
		if err != nil || bytes.Contains(log, []byte(text)) {
			return err
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%w: %s", err, log)
		}
	}
}
