package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measureAll(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measureAll(ctx context.Context) error {
	binary := flag.String("binary", "../../bin/flowhost", "the program to measure")
	plugin := flag.String("plugin", "../../examples/hello/greet.wasm", "module whose function greet the measured flow calls")
	starts := flag.Int("starts", 11, "how often to start the program")
	asks := flag.Int("asks", 2000, "how many results to wait for, one at a time")
	idle := flag.Bool("idle", false, "measure instead what a host of 100 flows costs while nothing happens; takes two minutes")
	modules := flag.String("modules", "", "measure instead starts with these numbers of different Go modules, such as 1,10,100; 100 take minutes and 3 GB of disk")
	flows := flag.String("flows", "", "measure instead the memory of a host of the flows in this directory, before any call")
	flag.Parse()
	counts, err := numbers(*modules)
	if err != nil {
		return err
	}

	module, err := os.ReadFile(*plugin)
	if err != nil {
		return fmt.Errorf("%w: run make build first", err)
	}
	if *flows != "" {
		return measureFlows(ctx, *binary, *flows)
	}
	if len(counts) > 0 {
		return measureStarts(ctx, *binary, module, counts, *starts)
	}
	if *idle {
		return measureIdle(ctx, *binary, module)
	}
	site, err := newSite(*binary, benchFiles(module))
	if err != nil {
		return err
	}
	defer os.RemoveAll(site.dir)

	cold, err := site.start(ctx)
	if err != nil {
		return err
	}
	if err := cold.stop(); err != nil {
		return err
	}
	fmt.Printf("start, empty cache of compiled modules   %8.1f ms\n", ms(cold.took))
	var took, used []time.Duration
	for range *starts {
		p, err := site.start(ctx)
		if err != nil {
			return err
		}
		took, used = append(took, p.took), append(used, p.used)
		if err := p.stop(); err != nil {
			return err
		}
	}
	fmt.Printf("start, warm cache                        %8.1f ms median of %d, %.1f ms of processors\n", ms(quantile(took, 0.5)), len(took), ms(quantile(used, 0.5)))
	return measureRunning(ctx, site, *asks)
}

// numbers reads "1,10,100".
func numbers(list string) ([]int, error) {
	var all []int
	for field := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-modules: %q is not a number of modules", field)
		}
		all = append(all, n)
	}
	return all, nil
}

func measureRunning(ctx context.Context, site *site, asks int) error {
	p, err := site.start(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := sleep(ctx, 5*time.Second); err != nil {
		return err
	}
	has, err := p.memory()
	if err != nil {
		return err
	}
	fmt.Printf("resident memory, idle after 5 s          %8.1f MB\n", mb(has.resident))
	trips, err := p.trips(ctx, asks)
	if err != nil {
		return err
	}
	for _, t := range trips {
		fmt.Printf("%-40s %8.3f ms p50 %8.3f ms p99, %d times\n", t.name, ms(quantile(t.took, 0.5)), ms(quantile(t.took, 0.99)), len(t.took))
	}
	if has, err = p.memory(); err != nil {
		return err
	}
	fmt.Printf("resident memory, after these             %8.1f MB\n", mb(has.resident))
	return nil
}
