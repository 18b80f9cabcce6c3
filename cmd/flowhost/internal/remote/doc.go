// Package remote connects commands to a running host.
//
// [Host] finds the host (dial.go): by flags, by the environment, or by a data
// directory nearby. [PickRun], [PickSchedule] and [PickBackfill] resolve the names
// that people type (selector.go, schedules.go, backfills.go), [EachDeadLetter] pages
// dead letters (deadletters.go), [EachKey] pages keys of buckets (buckets.go),
// [Host.Download] reads artifacts (artifacts.go), [FindTask] follows a path of tasks into
// sub-flows (taskpath.go). [Follower] starts a run and follows it to its end (await.go,
// start.go). faults.go warns of files that the host could not load. Requests that only
// read are repeated while the host is away: see
// [Host.Persistently].
package remote
