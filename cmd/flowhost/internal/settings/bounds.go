package settings

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Presets of the host, as in host.Config, which lower ceilings override.
const (
	presetMemory  = 256 << 20
	presetOutput  = 1 << 20
	presetLog     = 64 << 10
	presetTimeout = 5 * time.Minute
)

// bounds reads the default limits of calls and their ceilings.
func (r *settingsReader) bounds(f *settingsFile, s *Settings) {
	l := f.Limits
	if l == nil {
		l = &limitsBlock{}
	}
	r.sizes(&s.Limits.Memory, &s.Ceilings.Memory, l.Memory, l.MaxMemory, run.MaxMemory, presetMemory)
	r.sizes(&s.Limits.Output, &s.Ceilings.Output, l.Output, l.MaxOutput, run.MaxOutput, presetOutput)
	r.sizes(&s.Limits.Log, &s.Ceilings.Log, l.Log, l.MaxLog, run.MaxLog, presetLog)
	r.pair(&s.Limits.Fuel, &s.Ceilings.Fuel, int64(r.number(l.Fuel, run.MaxFuel)), int64(r.number(l.MaxFuel, run.MaxFuel)), run.MaxFuel, l.Fuel, decimal)
	s.Opened = r.opened(l.Opened)
	var usual, most int64
	r.pair(&usual, &most, int64(r.duration(f.Timeout)), int64(r.duration(f.MaxTimeout)), int64(presetTimeout), f.Timeout,
		func(n int64) string { return time.Duration(n).String() })
	s.Timeout, s.Ceilings.Timeout = time.Duration(usual), time.Duration(most)
}

func (r *settingsReader) sizes(usual, most *int64, stated, ceiling *hcl.Attribute, highest, preset int64) {
	for _, a := range []*hcl.Attribute{stated, ceiling} {
		if n := r.size(a); n > highest {
			r.wrong(a, "%q must be at most %s.", a.Name, flows.FormatSize(highest))
			return
		}
	}
	quiet := settingsReader{} // problems have already been recorded
	r.pair(usual, most, quiet.size(stated), quiet.size(ceiling), preset, stated, flows.FormatSize)
}

// pair sets a default and its ceiling. A stated default must not exceed the ceiling; the
// preset is lowered to it.
func (r *settingsReader) pair(usual, most *int64, stated, ceiling, preset int64, at *hcl.Attribute, show func(int64) string) {
	*usual, *most = stated, ceiling
	switch {
	case ceiling == 0:
	case stated > ceiling:
		r.wrong(at, "%q is the default of tasks and must not exceed max_%s, %s.", at.Name, at.Name, show(ceiling))
	case stated == 0 && preset > ceiling:
		*usual = ceiling
	}
}

func decimal(n int64) string { return fmt.Sprint(n) }
