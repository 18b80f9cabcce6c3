package settings

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/flows"
)

// Change is a setting that differs between two settings of a host.
type Change struct {
	Name        string // as in the file, with its block: "nats.listen"
	Before, Now string // "default", "none" or Unset where it is not set
	Live        bool   // it applies to a running host; otherwise the host must be restarted
}

// Changes are the settings that differ, in the order of the table below.
func Changes(before, now Settings) []Change {
	var all []Change
	for _, s := range table {
		if b, n := s.text(&before), s.text(&now); b != n {
			all = append(all, Change{s.name, b, n, s.live})
		}
	}
	return all
}

// setting is a row of the table of all settings.
type setting struct {
	name string
	live bool
	text func(*Settings) string
}

// Unset is a setting without a default: whatever it limits stays as it is.
const Unset = "unset"

// Other values that are not set.
const (
	byDefault = "default"
	unbounded = "none"
)

// table has every setting of the file.
var table = []setting{
	{"workers", true, func(s *Settings) string { return optional(s.Workers) }},
	{"in_flight", true, func(s *Settings) string { return number(s.InFlight, byDefault) }},
	{"cancel_grace", true, func(s *Settings) string { return optional(s.Grace) }},
	{"timeout", true, func(s *Settings) string { return duration(s.Timeout, byDefault) }},
	{"max_timeout", true, func(s *Settings) string { return duration(s.Ceilings.Timeout, unbounded) }},
	{"limits.memory", true, func(s *Settings) string { return size(s.Limits.Memory, byDefault) }},
	{"limits.output", true, func(s *Settings) string { return size(s.Limits.Output, byDefault) }},
	{"limits.log", true, func(s *Settings) string { return size(s.Limits.Log, byDefault) }},
	{"limits.fuel", true, func(s *Settings) string { return number(s.Limits.Fuel, unbounded) }},
	{"limits.max_memory", true, func(s *Settings) string { return size(s.Ceilings.Memory, unbounded) }},
	{"limits.max_output", true, func(s *Settings) string { return size(s.Ceilings.Output, unbounded) }},
	{"limits.max_log", true, func(s *Settings) string { return size(s.Ceilings.Log, unbounded) }},
	{"limits.max_fuel", true, func(s *Settings) string { return number(s.Ceilings.Fuel, unbounded) }},
	{"limits.opened", true, func(s *Settings) string { return size(int64(s.Opened), byDefault) }},
	{"connection", true, func(s *Settings) string { return declared(s, "connection") }},
	{"secret", true, func(s *Settings) string { return declared(s, "secret") }},
	{"allow", true, func(s *Settings) string { return declared(s, "allow") }},
	{"secrets.age_identities", true, func(s *Settings) string { return cmp.Or(strings.Join(s.Secrets.Identities, ", "), unbounded) }},
	{"secrets.vault.address", true, func(s *Settings) string { return cmp.Or(s.Secrets.Vault.Address, unbounded) }},
	{"secrets.vault.token_file", true, func(s *Settings) string { return cmp.Or(s.Secrets.Vault.TokenFile, unbounded) }},
	{"secrets.vault.namespace", true, func(s *Settings) string { return cmp.Or(s.Secrets.Vault.Namespace, unbounded) }},
	{"secrets.vault.ca", true, func(s *Settings) string { return cmp.Or(s.Secrets.Vault.CA, byDefault) }},
	{"egress.proxy", true, func(s *Settings) string { return cmp.Or(s.Proxy, unbounded) }},
	{"log_level", true, func(s *Settings) string { return strings.ToLower(s.LogLevel.String()) }},
	{"journal.size", true, func(s *Settings) string { return size(s.Streams.JournalBytes, Unset) }},
	{"triggers.size", true, func(s *Settings) string { return size(s.Streams.TriggerBytes, Unset) }},
	{"events.size", true, func(s *Settings) string { return size(s.Streams.EventBytes, Unset) }},
	{"events.age", true, func(s *Settings) string { return duration(s.Streams.EventAge, Unset) }},
	{"history.per_flow", true, func(s *Settings) string { return number(s.Streams.HistoryPerFlow, Unset) }},
	{"history.size", true, func(s *Settings) string { return size(s.Streams.HistoryBytes, Unset) }},
	{"history.age", true, func(s *Settings) string { return duration(s.Streams.HistoryAge, Unset) }},
	{"logs.size", true, func(s *Settings) string { return size(s.Streams.LogBytes, Unset) }},
	{"logs.age", true, func(s *Settings) string { return duration(s.Streams.LogAge, Unset) }},

	{"data", false, func(s *Settings) string { return s.Data }},
	{"cache", false, func(s *Settings) string { return cmp.Or(s.Cache, byDefault) }},
	{"memory", false, func(s *Settings) string { return size(s.Memory, byDefault) }},
	{"durability", false, func(s *Settings) string { return string(cmp.Or(s.Durability, natsd.SyncStrict)) }},
	{"watch", false, func(s *Settings) string { return fmt.Sprint(!s.Unwatched) }},
	{"nats.url", false, func(s *Settings) string { return cmp.Or(s.NATSURL, Unset) }},
	{"nats.creds", false, func(s *Settings) string { return cmp.Or(s.NATSCreds, Unset) }},
	{"nats.app_creds", false, func(s *Settings) string { return cmp.Or(s.NATSAppCreds, Unset) }},
	{"nats.listen", false, func(s *Settings) string { return cmp.Or(s.NATSListen, byDefault) }},
	{"nats.replicas", false, func(s *Settings) string { return number(s.Streams.Replicas, Unset) }},
	{"journal.snapshot_every", false, func(s *Settings) string { return number(s.SnapshotEvery, byDefault) }},
	{"artifacts.size", false, func(s *Settings) string { return size(s.Artifacts.Size, byDefault) }},
	{"artifacts.max", false, func(s *Settings) string { return size(s.Artifacts.Max, byDefault) }},
	{"events.of", false, func(s *Settings) string { return cmp.Or(s.EventsOf, "tasks") }},
}

// declared are the blocks of a type by name, each with a digest of what it states: values are
// not shown.
func declared(s *Settings, block string) string {
	if s.Operator == nil {
		return unbounded
	}
	var all []string
	note := func(name string, content any) {
		text, _ := json.Marshal(content) // strings, numbers, lists and maps of these
		sum := sha256.Sum256(text)
		all = append(all, fmt.Sprintf("%s (%x)", name, sum[:4]))
	}
	switch block {
	case "connection":
		for _, c := range s.Operator.Connections {
			note(c.Name, c)
		}
	case "secret":
		for _, x := range s.Operator.Secrets {
			note(x.Name, x)
		}
	case "allow":
		for _, a := range s.Operator.Allow {
			note(fmt.Sprintf("%q", a.Pattern), a)
		}
	}
	return cmp.Or(strings.Join(all, ", "), unbounded)
}

// optional is a value for which 0 is one.
func optional[T any](v *T) string {
	if v == nil {
		return byDefault
	}
	return fmt.Sprint(*v)
}

func number[T int | int64](n T, none string) string {
	if n == 0 {
		return none
	}
	return fmt.Sprint(n)
}

func duration(d time.Duration, none string) string {
	if d == 0 {
		return none
	}
	return d.String()
}

func size(n int64, none string) string {
	if n == 0 {
		return none
	}
	return flows.FormatSize(n)
}
