// Package simulate is the command simulate: it reads the assumptions from flags, runs
// the simulation of schedules or of one flow's runs, and writes the report as text or
// JSON. The models themselves are in internal/simulation and internal/trials.
package simulate
