package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTimes parses a range of times "FROM..TO", either of which may be missing, or one
// time: a day, or an instant. The end is not part of the range. An empty string is no
// bound at all.
func ParseTimes(text string, now time.Time) (from, to time.Time, err error) {
	first, last, ranged := strings.Cut(text, "..")
	if from, err = ParseTime(first, now); err != nil {
		return from, to, err
	}
	switch {
	case text == "":
	case ranged:
		to, err = ParseTime(last, now)
	case len(text) == len(time.DateOnly) && strings.Count(text, "-") == 2:
		to = from.AddDate(0, 0, 1)
	default:
		to = from.Add(1)
	}
	if err == nil && !to.IsZero() && !from.Before(to) {
		err = fmt.Errorf("%s is not before %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, err
}

// ParseTime parses an instant, a day, which begins at local midnight, or an age. An
// empty string is the zero time.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, form := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time: 2026-01-02, 2026-01-02T15:04:05Z, or an age such as 90m, 24h, 7d is expected", text)
}
