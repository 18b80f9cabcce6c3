// Package plan compares sets of flows: what is deployed on a host with what files
// contain. It finds added, changed and removed flows, their blocks, modules, grants
// and schedules, and writes the difference for people and as JSON.
package plan
