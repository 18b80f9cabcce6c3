package simulate

import (
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/timetable"
	"github.com/flowhost/flowhost/internal/schedsim"
	"github.com/flowhost/flowhost/run"
)

// What simulate --json prints. Durations are in milliseconds.
type (
	simulationFile struct {
		From      string                 `json:"from"`
		To        string                 `json:"to"`
		Assumed   assumedJSON            `json:"assumed"`
		Notes     []string               `json:"notes"`
		Schedules []scheduleRunsJSON     `json:"schedules"`
		Herds     []herdJSON             `json:"herds"`
		Workers   workersJSON            `json:"workers"`
		MostOpen  int                    `json:"most_open_runs"`
		Changes   []timetable.ChangeJSON `json:"changes"`
	}
	assumedJSON struct {
		TakesMS     float64            `json:"takes_ms"`
		FlowTakesMS map[string]float64 `json:"flow_takes_ms"`
		Workers     int                `json:"workers"`
		Down        []rangeJSON        `json:"down"`
	}
	rangeJSON struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	scheduleRunsJSON struct {
		run.ScheduleRef
		Times     int     `json:"times"`
		Runs      int     `json:"runs"`
		Skipped   int     `json:"skipped"`
		Rejected  int     `json:"rejected"`
		Reason    string  `json:"reason,omitempty"` // of the last one that was rejected
		Missed    int     `json:"missed"`
		CaughtUp  int     `json:"caught_up"`
		Canceled  int     `json:"canceled"`
		Waited    int     `json:"waited"`
		MaxWaitMS float64 `json:"max_wait_ms"`
		Open      int     `json:"open"` // at the end
	}
	herdJSON struct {
		Minute    string      `json:"minute"`
		Minutes   int         `json:"minutes"`
		Runs      int         `json:"runs"`
		Late      int         `json:"late"`
		Schedules []shareJSON `json:"schedules"`
		JitterMS  float64     `json:"suggested_jitter_ms"`
	}
	shareJSON struct {
		run.ScheduleRef
		Runs int `json:"runs"`
	}
	workersJSON struct {
		Used          float64   `json:"used_seconds"` // of all workers together
		MostRunning   int       `json:"most_running"`
		AllBusyMS     float64   `json:"all_busy_ms"`
		MostWaiting   int       `json:"most_waiting"`
		MostWaitingAt string    `json:"most_waiting_at,omitempty"`
		LongestWaitMS float64   `json:"longest_wait_ms"`
		LongestWait   *waitJSON `json:"longest_wait,omitempty"`
	}
	waitJSON struct {
		run.ScheduleRef
		From string `json:"from"`
	}
)

func simulationJSON(a assumptions, r *schedsim.Report) simulationFile {
	out := simulationFile{
		From: render.Instant(a.From), To: render.Instant(a.To), Notes: append([]string{}, r.Notes...), Assumed: assumedOf(a),
		Schedules: make([]scheduleRunsJSON, len(r.Schedules)), Herds: make([]herdJSON, len(r.Herds)),
		Workers: workersOf(r.Pool), MostOpen: r.MostOpen, Changes: timetable.ChangesJSON(r.Changes),
	}
	for i, s := range r.Schedules {
		out.Schedules[i] = scheduleRunsJSON{
			ScheduleRef: s.Schedule, Times: s.Times + s.Missed, Runs: s.Runs, Skipped: s.Skipped, Rejected: s.Rejected, Reason: s.Reason,
			Missed: s.Missed, CaughtUp: s.CaughtUp, Canceled: s.Canceled, Waited: s.Waited, MaxWaitMS: render.MS(s.MaxWait), Open: s.Open,
		}
	}
	for i, h := range r.Herds {
		out.Herds[i] = herdJSON{Minute: render.Instant(h.Minute), Minutes: h.Minutes, Runs: h.Runs, Late: h.Late, JitterMS: render.MS(h.Jitter)}
		for _, share := range h.Schedules {
			out.Herds[i].Schedules = append(out.Herds[i].Schedules, shareJSON{share.Schedule, share.Runs})
		}
	}
	return out
}

func assumedOf(a assumptions) assumedJSON {
	out := assumedJSON{TakesMS: render.MS(a.Takes), FlowTakesMS: map[string]float64{}, Workers: a.Workers, Down: []rangeJSON{}}
	for flow, takes := range a.FlowTakes {
		out.FlowTakesMS[flow] = render.MS(takes)
	}
	for _, o := range a.Outages {
		out.Down = append(out.Down, rangeJSON{render.Instant(o.From), render.Instant(o.To)})
	}
	return out
}

func workersOf(p schedsim.Pool) workersJSON {
	out := workersJSON{
		Used: p.Used, MostRunning: p.MostRunning, AllBusyMS: render.MS(p.AllBusy), MostWaiting: p.MostWaiting, LongestWaitMS: render.MS(p.LongestWait),
	}
	if p.MostWaiting > 0 {
		out.MostWaitingAt = render.Instant(p.MostWaitingAt)
		out.LongestWait = &waitJSON{p.LongestWaitOf, render.Instant(p.LongestWaitAt)}
	}
	return out
}
