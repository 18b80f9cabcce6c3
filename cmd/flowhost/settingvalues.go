package main

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

// settingsReader reads the values of settings and collects what is wrong with
// them. An attribute that is nil has not been set.
type settingsReader struct {
	diags hcl.Diagnostics
}

// wrong notes a value that cannot be.
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

// Bounds of numbers that have no meaning beyond them. A worker takes some memory
// before it has anything to do.
const (
	maxWorkers  = 10_000
	maxReplicas = 5 // of a stream, in NATS
	maxAge      = 100 * 365 * 24 * time.Hour
)

// whole is a whole number above 0.
func (r *settingsReader) whole(a *hcl.Attribute) int { return r.number(a, math.MaxInt32) }

// number is a whole number above 0 and not above the given one.
func (r *settingsReader) number(a *hcl.Attribute, most int64) int {
	text, ok := r.text(a)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || n < 1:
		r.wrong(a, "%q must be a whole number, 1 or more.", a.Name)
	case n > most || err != nil:
		r.wrong(a, "%q is %d at most.", a.Name, most)
	default:
		return int(n)
	}
	return 0
}

// oneOf is one of some words, the first of them by default.
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
	sync, err := parseDurability(text)
	if err != nil {
		r.wrong(a, "%q: %s.", a.Name, err)
	}
	return sync
}

func parseDurability(text string) (natsd.Sync, error) {
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
		r.wrong(a, "%q is 100 years at most; %q is more.", a.Name, text)
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

// opened is how much of a value expressions look into.
func (r *settingsReader) opened(a *hcl.Attribute) int {
	n := r.size(a)
	if n > maxOpened {
		r.wrong(a, "%q must be 4MiB at most: expressions compute on the engine's loop, which all flows share.", a.Name)
		return 0
	}
	return int(n)
}
