package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
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
	flag.Parse()

	site, err := newSite(*binary, *plugin)
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
	var took []time.Duration
	for range *starts {
		p, err := site.start(ctx)
		if err != nil {
			return err
		}
		took = append(took, p.took)
		if err := p.stop(); err != nil {
			return err
		}
	}
	fmt.Printf("start, warm cache                        %8.1f ms median of %d\n", ms(quantile(took, 0.5)), len(took))
	return measureRunning(ctx, site, *asks)
}

func measureRunning(ctx context.Context, site *site, asks int) error {
	p, err := site.start(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	select {
	case <-time.After(5 * time.Second): // idle, with the garbage of the start collected
	case <-ctx.Done():
		return ctx.Err()
	}
	resident, err := p.resident()
	if err != nil {
		return err
	}
	fmt.Printf("resident memory, idle after 5 s          %8.1f MB\n", float64(resident)/1e6)
	trips, err := p.trips(ctx, asks)
	if err != nil {
		return err
	}
	for _, t := range trips {
		fmt.Printf("%-40s %8.3f ms p50 %8.3f ms p99, %d times\n", t.name, ms(quantile(t.took, 0.5)), ms(quantile(t.took, 0.99)), len(t.took))
	}
	if resident, err = p.resident(); err != nil {
		return err
	}
	fmt.Printf("resident memory, after these             %8.1f MB\n", float64(resident)/1e6)
	return nil
}
