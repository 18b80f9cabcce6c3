package main

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/outfile"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/testreport"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/internal/flowtest"
)

// tester is test with its flags.
type tester struct {
	*cli.App
	files  flowfiles.Flags
	only   string
	asJSON bool
	junit  string
}

func testCommand(a *cli.App) *cobra.Command {
	t := &tester{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "test PATH...",
		Short: "Run the tests of flows, in virtual time",
		Long: `Runs the tests in *.test.hcl files: flows with mocked tasks, in virtual time, so that
hours of retries, timeouts, schedules and waits take milliseconds. PATH is a directory,
which is searched recursively, or a test file. A flow file beside a test file limits
the flows to those of that file. A task without a mock calls its module, unless the
module has grants.`,
		Example: `  flowhost test flows/
  flowhost test orders.test.hcl --run 'retries|closed'
  flowhost test flows/ --junit report.xml
  flowhost test flows/ --json | jq '.tests[] | select(.state == "failed")'`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return t.test(cmd, paths) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&t.only, "run", "", "run only tests whose name matches this `REGEXP`")
	t.files.AddFlags(flags)
	t.files.AddConfig(flags)
	flags.BoolVar(&t.asJSON, "json", false, "print the results as JSON")
	flags.StringVar(&t.junit, "junit", "", "also write the results to this `FILE`, in JUnit format")
	return cmd
}

func (t *tester) test(cmd *cobra.Command, paths []string) error {
	only, err := regexp.Compile(t.only)
	if err != nil {
		return cli.Usage(cmd, "--run: %w", err)
	}
	if t.junit != "" {
		if err := outfile.JUnit.Check(t.junit); err != nil {
			return cli.WithCode(cli.ExitInvalid, err)
		}
	}
	soft, _, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	h, err := serve.NewHost(soft, settings.Settings{}, nil, nil, t.Log(slog.LevelError))
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	options, err := t.files.Allowed(cmd, t.App, paths[0], host.Catalog{Host: h, Compile: true})
	if err != nil {
		return err
	}
	var suite *flows.Suite
	var diags hcl.Diagnostics
	flowfiles.Checked(soft, options, nil, func(options flows.Options) { suite, diags = flows.LoadTests(soft, paths, options) })
	switch {
	case soft.Err() != nil:
		return context.Cause(soft) // unread modules are not errors
	case t.asJSON && diags.HasErrors():
		if err := t.PrintJSON(flows.DiagnosticsJSON(diags, suite.Files())); err != nil {
			return err
		}
	default:
		t.ShowDiagnostics(suite.Files(), diags)
	}
	if diags.HasErrors() {
		return cli.Quiet(cli.ExitInvalid)
	}
	if len(suite.Tests) == 0 {
		return cli.Exitf(cli.ExitInvalid, "no tests in %s: tests are in files whose names end in .test.hcl; name one beside a flow file that is named alone", paths[0])
	}
	matching := func(test *flows.Test) bool { return only.MatchString(test.Name) }
	if !slices.ContainsFunc(suite.Tests, matching) {
		return cli.Exitf(cli.ExitInvalid, "--run %q matches none of the %d tests", t.only, len(suite.Tests))
	}
	results, err := t.runAll(soft, suite, only, flowtest.Config{Invoker: h})
	if err != nil {
		return err
	}
	return t.conclude(suite, results)
}

// runAll runs the tests whose names match, one after the other, and reports each.
func (t *tester) runAll(ctx context.Context, suite *flows.Suite, only *regexp.Regexp, config flowtest.Config) ([]*flowtest.Result, error) {
	var results []*flowtest.Result
	file := ""
	for _, test := range suite.Tests {
		if !only.MatchString(test.Name) {
			continue
		}
		r, err := flowtest.Run(ctx, suite.Set, test, config)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		if t.asJSON {
			continue
		}
		if file != test.Range.Filename {
			file = test.Range.Filename
			fmt.Fprintln(t.Out, file)
		}
		t.report(suite, r)
	}
	return results, nil
}

// report writes the line of a test, and its problems.
func (t *tester) report(suite *flows.Suite, r *flowtest.Result) {
	word := t.Out.Paint(render.Green, "pass")
	if !r.Passed() {
		word = t.Out.Paint(render.Red, "FAIL")
	}
	fmt.Fprintf(t.Out, "  %s  %s  (%s)\n", word, r.Test.Name, passed(r))
	t.ShowDiagnostics(suite.Files(), r.Problems)
}

// passed is the time that a test took, virtual and real.
func passed(r *flowtest.Result) string {
	return fmt.Sprintf("%s in %s", r.Virtual.Round(time.Millisecond), r.Real.Round(time.Millisecond))
}

// conclude writes the totals and returns the exit code.
func (t *tester) conclude(suite *flows.Suite, results []*flowtest.Result) error {
	failed := 0
	for _, r := range results {
		if !r.Passed() {
			failed++
		}
	}
	if t.junit != "" {
		if err := outfile.JUnit.Write(t.junit, testreport.JUnit(results, suite.Files())); err != nil {
			return err
		}
	}
	if t.asJSON {
		if err := t.PrintJSON(testreport.JSON(results, suite.Files(), failed)); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(t.Out, "%d passed, %d failed\n", len(results)-failed, failed)
	}
	if failed > 0 {
		return cli.Quiet(cli.ExitFailed)
	}
	return nil
}
