// Package schedsim computes what the schedules of flows will do over a range of
// time, without a host and without running anything.
//
// [Run] goes through the range in virtual time, on the queue of package
// scheduler: its schedules, jitters and policies decide what fires. What becomes
// of a fire follows the rules of package engine, for runs that overlap, for those
// that wait for a slot of their flow, and for tasks that wait for a worker; a test
// holds both against each other. What nobody can know, how long runs take, is
// assumed: see [Config]. All tasks succeed at their first attempt, and so do
// their conditions. What ends at an instant has ended before anything fires at
// that instant.
//
// [EffectOf] states what one change of a zone's offset does to a schedule.
//
// The package starts no goroutines. The same Config gives the same Report.
package schedsim
