package settings

import (
	"errors"
	"fmt"
	"math"
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
	maxReplicas = 5 // of a stream, in NATS
	maxAge      = 100 * 365 * 24 * time.Hour
)

// whole is a positive integer.
func (r *settingsReader) whole(a *hcl.Attribute) int { return r.number(a, math.MaxInt32) }

// number is a positive integer up to most.
func (r *settingsReader) number(a *hcl.Attribute, most int64) int {
	text, ok := r.text(a)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || n < 1:
		r.wrong(a, "%q must be an integer of at least 1.", a.Name)
	case n > most || err != nil:
		r.wrong(a, "%q must be at most %d.", a.Name, most)
	default:
		return int(n)
	}
	return 0
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

func (r *settingsReader) duration(a *hcl.Attribute) time.Duration {
	text, ok := r.text(a)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.wrong(a, `%q must be a positive duration with a unit, such as "30s" or "5m"; %q is not.`, a.Name, text)
		return 0
	}
	if d > maxAge {
		r.wrong(a, "%q must be at most 100 years; %q is more.", a.Name, text)
		return 0
	}
	return d
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
