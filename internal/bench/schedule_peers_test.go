package main

import (
	"errors"
	"time"

	"github.com/adhocore/gronx"
	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	netresearch "github.com/netresearch/go-cron"
	"github.com/reugn/go-quartz/quartz"
	robfig "github.com/robfig/cron/v3"
)

// nextFunc gives the first time of a schedule after another; the zero time when there is
// none.
type nextFunc func(after time.Time) time.Time

// dialect is one reader of cron expressions of those that are compared.
type dialect struct {
	name  string
	parse func(expr string, zone *time.Location) (nextFunc, error)
}

var dialects = []dialect{
	{"flowhost", parseFlowhost},
	{"robfig", parseRobfig},
	{"netresearch", parseNetresearch},
	{"gronx", parseGronx},
	{"go-quartz", parseQuartz},
}

// gocronDialect is robfig's with corrections of its own for daylight saving.
var gocronDialect = dialect{"gocron", parseGocron}

// parseRobfig leaves the zone to the time that is asked for: so does its scheduler.
func parseRobfig(expr string, zone *time.Location) (nextFunc, error) {
	s, err := robfig.ParseStandard(expr)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time { return s.Next(after.In(zone)) }, nil
}

func parseNetresearch(expr string, zone *time.Location) (nextFunc, error) {
	s, err := netresearch.ParseStandard(expr)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time { return s.Next(after.In(zone)) }, nil
}

// parseGronx only checks the expression: it is read again each time.
func parseGronx(expr string, zone *time.Location) (nextFunc, error) {
	if !gronx.IsValid(expr) {
		return nil, errors.New("not valid")
	}
	return func(after time.Time) time.Time {
		at, err := gronx.NextTickAfter(expr, after.In(zone), false)
		if err != nil {
			return time.Time{}
		}
		return at
	}, nil
}

// parseQuartz puts the second in front, which must be written there.
func parseQuartz(expr string, zone *time.Location) (nextFunc, error) {
	trigger, err := quartz.NewCronTriggerWithLoc("0 "+expr, zone)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time {
		at, err := trigger.NextFireTime(after.UnixNano())
		if err != nil {
			return time.Time{}
		}
		return time.Unix(0, at).In(zone)
	}, nil
}

// parseGocron asks a scheduler with a clock that does not move what it does next:
// the corrections are not to be had without one.
func parseGocron(expr string, zone *time.Location) (nextFunc, error) {
	if err := gocron.NewDefaultCron(false).IsValid(expr, zone, time.Now()); err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time {
		s, err := gocron.NewScheduler(gocron.WithLocation(zone), gocron.WithClock(clockwork.NewFakeClockAt(after)))
		if err != nil {
			return time.Time{}
		}
		defer s.Shutdown()
		job, err := s.NewJob(gocron.CronJob(expr, false), gocron.NewTask(func() {}))
		if err != nil {
			return time.Time{}
		}
		s.Start()
		at, err := job.NextRun()
		if err != nil {
			return time.Time{}
		}
		return at
	}, nil
}
