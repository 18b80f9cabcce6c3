// Package timetable lists the times of schedules without a host: of an expression or
// of a trigger, with the effect that changes of a zone's offset have on them.
package timetable
