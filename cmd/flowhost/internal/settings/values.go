package settings

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/flows"
)

// settingsReader reads the values of settings and collects their problems. A nil
// attribute is not set.
type settingsReader struct {
	diags hcl.Diagnostics
}

// wrong records an invalid value.
func (r *settingsReader) wrong(a *hcl.Attribute, format string, args ...any) {
	at := a.Expr.Range()
	r.diags = append(r.diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Value not allowed", Detail: fmt.Sprintf(format, args...), Subject: &at,
	})
}

func (r *settingsReader) text(a *hcl.Attribute) (string, bool) {
	if a == nil {
		return "", false
	}
	var text string
	diags := gohcl.DecodeExpression(a.Expr, nil, &text)
	r.diags = append(r.diags, diags...)
	return text, !diags.HasErrors()
}

func (r *settingsReader) flag(a *hcl.Attribute, otherwise bool) bool {
	if a == nil {
		return otherwise
	}
	on := otherwise
	r.diags = append(r.diags, gohcl.DecodeExpression(a.Expr, nil, &on)...)
	return on
}

// Bounds of numbers that make no sense beyond them. Even an idle worker takes memory.
const (
	MaxWorkers  = 10_000
	maxInFlight = 10_000
	minMemory   = 64 << 20 // a Go module takes a few MiB, and its output is counted, too
	maxReplicas = 5        // of a stream, in NATS
	maxAge      = 100 * 365 * 24 * time.Hour
)

// whole is a positive integer.
func (r *settingsReader) whole(a *hcl.Attribute) int { return r.number(a, math.MaxInt32) }

// number is a positive integer up to most, 0 if it is not set.
func (r *settingsReader) number(a *hcl.Attribute, most int64) int {
	n, _ := r.integer(a, 1, most)
	return n
}

// integer is an integer of that range; ok is false if it is not set, or wrong.
func (r *settingsReader) integer(a *hcl.Attribute, least, most int64) (n int, ok bool) {
	text, ok := r.text(a)
	if !ok {
		return 0, false
	}
	parsed, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || parsed < least:
		r.wrong(a, "%q must be an integer of at least %d.", a.Name, least)
	case parsed > most || err != nil:
		r.wrong(a, "%q must be at most %d.", a.Name, most)
	default:
		return int(parsed), true
	}
	return 0, false
}

// oneOf is one of the given strings, the first by default.
func (r *settingsReader) oneOf(a *hcl.Attribute, words ...string) string {
	text, ok := r.text(a)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, text) {
		r.wrong(a, "%q must be one of %q; %q is not.", a.Name, words, text)
	}
	return text
}

func (r *settingsReader) durability(a *hcl.Attribute) natsd.Sync {
	text, ok := r.text(a)
	if !ok {
		return ""
	}
	sync, err := ParseDurability(text)
	if err != nil {
		r.wrong(a, "%q: %s.", a.Name, err)
	}
	return sync
}

// ParseDurability parses the durability of the journal.
func ParseDurability(text string) (natsd.Sync, error) {
	switch s := natsd.Sync(text); s {
	case natsd.SyncStrict, natsd.SyncRelaxed, natsd.SyncMemory:
		return s, nil
	}
	return "", fmt.Errorf("%q is not one of %q, %q and %q", text, natsd.SyncStrict, natsd.SyncRelaxed, natsd.SyncMemory)
}

// duration is a positive duration, 0 if it is not set.
func (r *settingsReader) duration(a *hcl.Attribute) time.Duration {
	d, _ := r.period(a, 1, "a positive duration")
	return d
}

// period is a duration of at least that; ok is false if it is not set, or wrong.
func (r *settingsReader) period(a *hcl.Attribute, least time.Duration, what string) (d time.Duration, ok bool) {
	text, ok := r.text(a)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least {
		r.wrong(a, `%q must be %s with a unit, such as "30s" or "5m"; %q is not.`, a.Name, what, text)
		return 0, false
	}
	if d > maxAge {
		r.wrong(a, "%q must be at most 100 years; %q is more.", a.Name, text)
		return 0, false
	}
	return d, true
}

// size is a positive number of bytes, plain or with a unit, as flow files have it.
func (r *settingsReader) size(a *hcl.Attribute) int64 {
	text, ok := r.text(a)
	if !ok {
		return 0
	}
	size, ok := flows.ParseSize(text)
	if !ok {
		r.wrong(a, `%q must be a number of bytes, or one with a unit, such as "64KiB" or "256MiB"; %q is not.`, a.Name, text)
		return 0
	}
	return size
}

// maxOpened is the size of a record: an expression sees no larger value anyway.
const maxOpened = 4 << 20

// opened is how much of a value expressions may open.
func (r *settingsReader) opened(a *hcl.Attribute) int {
	n := r.size(a)
	if n > maxOpened {
		r.wrong(a, "%q must be at most 4MiB: expressions are evaluated on the engine's loop, which all flows share.", a.Name)
		return 0
	}
	return int(n)
}

// memory is the budget of guests.
func (r *settingsReader) memory(a *hcl.Attribute) int64 {
	n := r.size(a)
	if a != nil && n > 0 && n < minMemory {
		r.wrong(a, "%q must be at least %s.", a.Name, flows.FormatSize(minMemory))
		return 0
	}
	return n
}

// url is the address of a server, without credentials: settings are logged when they change.
func (r *settingsReader) url(a *hcl.Attribute, schemes ...string) string {
	text, ok := r.text(a)
	if !ok {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		r.wrong(a, "%q must be the URL of a server, %s://HOST:PORT.", a.Name, schemes[0])
	case u.User != nil:
		r.wrong(a, "%q must not contain credentials: a settings file is readable, and its changes are logged.", a.Name)
	default:
		return text
	}
	return ""
}
