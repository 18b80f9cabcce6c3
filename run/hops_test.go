package run_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

func TestHops(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values []string
		hops   int
		code   string
	}{
		"none":       {nil, 0, ""},
		"zero":       {[]string{"0"}, 0, ""},
		"some":       {[]string{"16"}, 16, ""},
		"zeros":      {[]string{"007"}, 7, ""},
		"too many":   {[]string{"17"}, 17, run.RequestLoop},
		"far more":   {[]string{"99999"}, 99999, run.RequestLoop},
		"no number":  {[]string{"many"}, run.MaxHops + 1, run.RequestHeader},
		"empty":      {[]string{""}, run.MaxHops + 1, run.RequestHeader},
		"negative":   {[]string{"-1"}, run.MaxHops + 1, run.RequestHeader},
		"signed":     {[]string{"+1"}, run.MaxHops + 1, run.RequestHeader},
		"spaces":     {[]string{" 1"}, run.MaxHops + 1, run.RequestHeader},
		"fraction":   {[]string{"1.0"}, run.MaxHops + 1, run.RequestHeader},
		"overflow":   {[]string{"18446744073709551617"}, run.MaxHops + 1, run.RequestHeader},
		"beyond int": {[]string{"4294967295"}, run.MaxHops + 1, run.RequestHeader},
		"several":    {[]string{"0", "17"}, run.MaxHops + 1, run.RequestHeader},
	} {
		trigger := run.Trigger{Headers: map[string][]string{run.HeaderHops: tt.values}}
		hops, err := trigger.Hops()
		wrong := (*run.RequestError)(nil)
		if errors.As(err, &wrong); hops != tt.hops || (wrong == nil) != (tt.code == "") || wrong != nil && wrong.Code != tt.code {
			t.Errorf("%s: %d, %v, want %d, %q", name, hops, err, tt.hops, tt.code)
		}
	}
}

func TestOnward(t *testing.T) {
	t.Parallel()
	first := run.Trigger{Headers: map[string][]string{"X": {"y"}}}
	if got := first.Onward(); got != nil {
		t.Errorf("%v from a trigger without hops", got)
	}
	next := run.Trigger{Headers: map[string][]string{run.HeaderHops: {"3"}, "X": {"y"}}}
	if diff := cmp.Diff(map[string][]string{run.HeaderHops: {"3"}}, next.Onward()); diff != "" {
		t.Error(diff)
	}
}
