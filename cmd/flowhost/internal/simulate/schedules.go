package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/schedsim"
	"github.com/flowhost/flowhost/run"
)

// Command is simulate with its flags.
type Command struct {
	*cli.App
	files    flowfiles.Flags
	from, to string
	takes    []string
	workers  int
	down     []string
	asJSON   bool
	trial    flowTrial
}

// New returns the command without its flags: see [Command.AddFlags].
func New(a *cli.App) *Command {
	return &Command{App: a, trial: flowTrial{Host: remote.Host{App: a}}}
}

// AddFlags adds the flags of the command.
func (s *Command) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.from, "from", "", "start at this `TIME`: 2026-01-02, 2026-01-02T15:04:05Z, or 24h, 7d ago; default: now")
	flags.StringVar(&s.to, "to", "24h", "end before this `TIME`, or after this duration: 24h, 7d")
	flags.StringArrayVar(&s.takes, "takes", nil, "duration of a run that does not wait, `[FLOW=]DURATION`: of all flows (default 30s) or of one; may be repeated")
	flags.IntVar(&s.workers, "workers", 0, "`NUMBER` of concurrent tasks; default: the one in the settings file "+settings.FileName+", or four times the number of CPUs")
	flags.StringArrayVar(&s.down, "down", nil, "`RANGE` in which the host is down, FROM/TO, where TO may be a duration; may be repeated")
	flags.BoolVar(&s.asJSON, "json", false, "print one JSON object with everything")
	s.trial.addTo(flags)
	s.files.AddFlags(flags)
}

// Run simulates the schedules of the flows in paths or, with --flow, runs of one flow.
func (s *Command) Run(cmd *cobra.Command, paths []string) error {
	ofFlow, err := s.trial.chosen(cmd)
	if err != nil {
		return err
	}
	if ofFlow {
		return s.tryFlow(cmd, paths)
	}
	options, err := s.files.Allowed(cmd, s.App, paths[0], nil)
	if err != nil {
		return err
	}
	set, err := flowfiles.Load(cmd.Context(), s.App, paths, options)
	if err != nil {
		return err
	}
	a := assumptions{}
	if err := s.assume(cmd, &a, set, paths[0]); err != nil {
		return err
	}
	report, err := schedsim.Run(cmd.Context(), a.Config)
	if many := (*schedsim.TooManyError)(nil); errors.As(err, &many) {
		return cli.Exitf(cli.ExitInvalid, "%w", err)
	}
	if err != nil {
		return err
	}
	if s.asJSON {
		return s.PrintJSON(simulationJSON(a, report))
	}
	s.showReport(a, report)
	return nil
}

// assumptions are the parameters of a simulation.
type assumptions struct {
	schedsim.Config
	workersFrom string // the source of the number of workers
}

// assume reads the flags.
func (s *Command) assume(cmd *cobra.Command, a *assumptions, set *flows.Set, path string) error {
	a.Flows = set.Flows
	if !slices.ContainsFunc(set.Flows, hasSchedule) {
		return cli.Usage(cmd, "none of %s has an enabled schedule", render.Count(len(set.Flows), "flow"))
	}
	now := time.Now()
	from, err := cli.ParseTime(s.from, now)
	if err != nil {
		return cli.Usage(cmd, "--from: %w", err)
	}
	a.From = from
	if s.from == "" {
		a.From = now.Truncate(time.Second)
	}
	if a.To, err = parseEnd(s.to, a.From); err != nil {
		return cli.Usage(cmd, "--to: %w", err)
	}
	if !a.To.After(a.From) {
		return cli.Usage(cmd, "--to %s is not after --from", s.to)
	}
	for _, text := range s.down {
		outage, err := parseOutage(text, now)
		if err != nil {
			return cli.Usage(cmd, "--down %q: %w", text, err)
		}
		a.Outages = append(a.Outages, outage)
	}
	if err := s.durations(cmd, a, set); err != nil {
		return err
	}
	a.Workers, a.workersFrom, err = s.countWorkers(cmd, path)
	return err
}

func hasSchedule(f *flows.Flow) bool {
	return slices.ContainsFunc(f.Triggers, func(t *flows.Trigger) bool { return t.Kind == run.TriggerSchedule && t.Enabled })
}

// durations reads how long runs take.
func (s *Command) durations(cmd *cobra.Command, a *assumptions, set *flows.Set) error {
	a.Takes, a.FlowTakes = schedsim.DefaultTakes, map[string]time.Duration{}
	for _, text := range s.takes {
		cut := strings.LastIndex(text, "=")
		takes, err := time.ParseDuration(text[cut+1:])
		if err != nil || takes <= 0 {
			return cli.Usage(cmd, "--takes %q: a duration is expected, such as 90s, or FLOW=90s", text)
		}
		if cut < 0 {
			a.Takes = takes
			continue
		}
		f, err := flowfiles.Pick(cmd, set, text[:cut])
		if err != nil {
			return err
		}
		a.FlowTakes[f.Name] = takes
	}
	return nil
}

// countWorkers is how many workers a host would have, and the source of that number.
func (s *Command) countWorkers(cmd *cobra.Command, path string) (n int, from string, err error) {
	given := cmd.Flags().Changed("workers")
	if given && s.workers < 1 {
		return 0, "", cli.Usage(cmd, "--workers %d: an integer of at least 1 is expected", s.workers)
	}
	file, err := settings.Read(s.App, "", path)
	if err != nil {
		return 0, "", err
	}
	from = fmt.Sprintf("four times the %s of this machine", render.Count(runtime.GOMAXPROCS(0), "CPU"))
	switch {
	case given:
		return s.workers, "--workers", nil
	case file.Workers == nil:
	case *file.Workers > 0:
		return *file.Workers, settings.FileName, nil
	default: // nothing would ever run
		from += ", because workers = 0 in " + settings.FileName + " pauses the host"
	}
	return 4 * runtime.GOMAXPROCS(0), from, nil
}

// parseEnd parses a time, or a duration after another one.
func parseEnd(text string, from time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil {
			return from.AddDate(0, 0, n), nil
		}
	}
	if later, err := time.ParseDuration(text); err == nil {
		return from.Add(later), nil
	}
	if at, err := cli.ParseTime(text, from); err == nil && text != "" {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time: 2026-01-02, 2026-01-02T15:04:05Z, or a duration such as 90m, 24h, 7d is expected", text)
}

func parseOutage(text string, now time.Time) (schedsim.Outage, error) {
	var o schedsim.Outage
	from, to, ranged := strings.Cut(text, "/")
	if !ranged || from == "" {
		return o, errors.New("FROM/TO is expected, such as 2026-01-02T15:00:00Z/90m")
	}
	var err, wrong error
	o.From, err = cli.ParseTime(from, now)
	o.To, wrong = parseEnd(to, o.From)
	if err = cmp.Or(err, wrong); err != nil {
		return o, err
	}
	if !o.To.After(o.From) {
		return o, errors.New("the end is not after the beginning")
	}
	return o, nil
}
