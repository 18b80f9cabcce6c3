package simulate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/flowsim"
)

// flowTrial is simulate of one flow with its flags, and those that locate a host with
// runs to sample from.
type flowTrial struct {
	remote.Host
	flow    string
	runs    int
	seed    uint64
	params  []string
	input   string
	tasks   []string
	mocks   string
	history bool
	last    int
	show    int
}

// Flags of simulate that belong to one of its forms.
var (
	ofFlows     = []string{"seed", "param", "input", "task", "mocks", "from-history", "last", "show", "data", "nats", "creds"}
	ofSchedules = []string{"from", "to", "takes", "down"}
)

// defaultLast is how many runs of the history are used.
const defaultLast = 200

func (t *flowTrial) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&t.flow, "flow", "", "simulate runs of the flow of this `NAME`; with --runs, optional if there is only one flow")
	flags.IntVar(&t.runs, "runs", flowsim.DefaultRuns, "`NUMBER` of runs of the flow")
	flags.Uint64Var(&t.seed, "seed", 1, "seed of the random numbers: the same `NUMBER` gives the same runs")
	flags.StringArrayVar(&t.params, "param", nil, "param of the runs, as `NAME=VALUE`; may be repeated")
	flags.StringVar(&t.input, "input", "null", "the runs' payload: `JSON`, @FILE, or - for stdin")
	flags.StringArrayVar(&t.tasks, "task", nil, "behavior of a task's attempts, `TASK=DURATION`, TASK=waits:SHARE, TASK=fail:PROBABILITY or several of these, with commas; * for all others; may be repeated")
	flags.StringVar(&t.mocks, "mocks", "", "results of calls: the mocks that all tests of this `FILE` share")
	flags.BoolVar(&t.history, "from-history", false, "sample durations and results from the runs of a host")
	flags.IntVar(&t.last, "last", defaultLast, "`NUMBER` of the latest runs in the history to use")
	flags.IntVar(&t.show, "show", 1, "show the timeline of the run of this `NUMBER`")
	t.Host.AddFlags(flags)
}

// chosen reports whether the flags select runs of a flow instead of schedules.
func (t *flowTrial) chosen(cmd *cobra.Command) (bool, error) {
	given := func(names []string) string {
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				return name
			}
		}
		return ""
	}
	chosen := given([]string{"flow", "runs"}) != ""
	if name := given(ofFlows); name != "" && !chosen {
		return false, cli.Usage(cmd, "--%s requires --flow", name)
	}
	if name := given(ofSchedules); name != "" && chosen {
		return false, cli.Usage(cmd, "--%s simulates schedules, --flow and --runs simulate runs of one flow: they exclude each other", name)
	}
	return chosen, nil
}

// tryFlow simulates runs of one flow.
func (s *Command) tryFlow(cmd *cobra.Command, paths []string) error {
	soft, _, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	a := trialAssumptions{}
	if err := s.assumeFlow(soft, cmd, &a, paths); err != nil {
		return err
	}
	samples := &sampled{App: s.App, ctx: soft}
	defer samples.close()
	a.Sample = samples.of
	report, err := flowsim.Run(soft, a.Config)
	if refused := (*flowsim.RefusedError)(nil); errors.As(err, &refused) {
		return cli.Exitf(cli.ExitInvalid, "%w\n--param and --input set what the runs get", err)
	}
	if err != nil {
		if soft.Err() != nil {
			return context.Cause(soft)
		}
		return err
	}
	if s.asJSON {
		return s.PrintJSON(trialJSON(&a, report))
	}
	s.showTrials(&a, report)
	return nil
}

// trialAssumptions are the parameters of simulated runs of a flow.
type trialAssumptions struct {
	flowsim.Config
	workersFrom string
	mocks       string // file; empty for none
}

// assumeFlow loads the flow, and reads the flags.
func (s *Command) assumeFlow(ctx context.Context, cmd *cobra.Command, a *trialAssumptions, paths []string) error {
	t := &s.trial
	if t.runs < 1 || t.runs > flowsim.MaxRuns {
		return cli.Usage(cmd, "--runs %d: an integer from 1 to %d is expected", t.runs, flowsim.MaxRuns)
	}
	if t.show < 1 || t.show > t.runs {
		return cli.Usage(cmd, "--show %d: there are %s", t.show, render.Count(t.runs, "run"))
	}
	if t.last < 1 {
		return cli.Usage(cmd, "--last %d: an integer of at least 1 is expected", t.last)
	}
	options, err := s.files.Allowed(cmd, s.App, paths[0], nil)
	if err != nil {
		return err
	}
	suite, err := loadMocked(ctx, s.App, paths, t.mocks, options)
	if err != nil {
		return err
	}
	a.Set, a.Runs, a.Seed, a.Show, a.mocks = suite.Set, t.runs, t.seed, t.show, t.mocks
	if a.Flow, err = flowfiles.Pick(cmd, suite.Set, t.flow); err != nil {
		return err
	}
	for _, test := range suite.Tests {
		if test.Flow == a.Flow {
			a.Mocks = test
		}
	}
	if a.Params, err = flowfiles.ParseParams(cmd, a.Flow, t.params); err != nil {
		return err
	}
	if a.Payload, err = s.ReadJSON(t.input); err != nil {
		return err
	}
	if a.Tasks, err = t.stated(cmd, a.Flow); err != nil {
		return err
	}
	if a.Workers, a.workersFrom, err = s.countWorkers(cmd, paths[0]); err != nil || !t.history {
		return err
	}
	a.Replay = !cmd.Flags().Changed("param") && !cmd.Flags().Changed("input")
	a.History, err = t.past(cmd, a.Flow.Name)
	return err
}

// loadMocked loads flows, and the mocks of a file of tests.
func loadMocked(ctx context.Context, a *cli.App, paths []string, mocks string, options flows.Options) (*flows.Suite, error) {
	if mocks == "" {
		set, err := flowfiles.Load(ctx, a, paths, options)
		return &flows.Suite{Set: set}, err
	}
	suite, diags := flows.LoadMocks(ctx, paths, mocks, options)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	a.ShowDiagnostics(suite.Files(), diags)
	if diags.HasErrors() {
		return nil, cli.Quiet(cli.ExitInvalid)
	}
	return suite, nil
}

// stated reads the values of --task.
func (t *flowTrial) stated(cmd *cobra.Command, f *flows.Flow) (map[string]flowsim.Stated, error) {
	all := map[string]flowsim.Stated{}
	for _, text := range t.tasks {
		name, what, ok := strings.Cut(text, "=")
		if !ok {
			return nil, cli.Usage(cmd, "--task %q: TASK=DURATION, TASK=waits:SHARE or TASK=fail:PROBABILITY is expected, such as price=2s,waits:0.9,fail:0.1", text)
		}
		if name != flowsim.EveryTask && f.Task(name) == nil {
			return nil, cli.Usage(cmd, "--task %q: flow %q has no task %q%s", text, f.Name, name, cli.Suggest(name, taskNames(f)))
		}
		stated := all[name]
		for part := range strings.SplitSeq(what, ",") {
			if err := parseStated(&stated, part); err != nil {
				return nil, cli.Usage(cmd, "--task %q: %w", text, err)
			}
		}
		all[name] = stated
	}
	return all, nil
}

func parseStated(s *flowsim.Stated, part string) error {
	if text, fails := strings.CutPrefix(part, "fail:"); fails {
		p, ok := parseShare(text)
		if !ok {
			return errors.New("the probability of a failure must be a number from 0 to 1, such as fail:0.1")
		}
		s.Fails = &p
		return nil
	}
	if text, waits := strings.CutPrefix(part, "waits:"); waits {
		p, ok := parseShare(text)
		if !ok {
			return errors.New("the share of its time in which an attempt waits for answers must be a number from 0 to 1, such as waits:0.9")
		}
		s.Waits = &p
		return nil
	}
	d, err := time.ParseDuration(part)
	if err != nil || d < 0 {
		return errors.New("a duration is expected, such as 2s, or fail:0.1 for the probability that an attempt fails")
	}
	s.Takes = &d
	return nil
}

func parseShare(text string) (float64, bool) {
	p, err := strconv.ParseFloat(text, 64)
	return p, err == nil && p >= 0 && p <= 1
}

func taskNames(f *flows.Flow) []string {
	var names []string
	for _, t := range f.AllTasks() {
		names = append(names, t.Name)
	}
	return names
}
