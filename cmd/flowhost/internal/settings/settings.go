package settings

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Settings are those of the host. The zero value is all defaults.
type Settings struct {
	NATSURL      string // external server; empty: the embedded one
	NATSCreds    string // file with credentials for it
	NATSAppCreds string // file with those for the account of clients; empty: one account for both
	NATSListen   string // where the embedded server listens; default natsd.DefaultListen

	Artifacts Artifacts

	Streams       bus.StreamConfig // sizes and ages; Replicas is for an external cluster
	EventsOf      string           // what FH_EVENTS has a copy of: "tasks" (default), "runs" or "none"
	SnapshotEvery int              // events of the journal; default 50 000
	AcceptLoss    bool             // of the journal's end

	Data       string         // data directory; empty: nothing is stored
	Cache      string         // directory of compiled modules; default: the user's cache directory
	Memory     int64          // bytes of guests; default: half of the machine's, see package serve
	Workers    *int           // attempts at once, 0 for none; default 4 × GOMAXPROCS
	InFlight   int            // attempts that compute, or have begun and wait; default 512
	Durability natsd.Sync     // default strict
	Timeout    time.Duration  // of attempts whose task states none; default 5m
	Grace      *time.Duration // of calls that are canceled, 0 for none; default 2s
	Limits     run.Limits     // of tasks that state none
	Ceilings   flows.Ceilings // of what tasks may state
	Opened     int            // bytes of JSON that expressions may open; default flows.DefaultOpened
	LogLevel   slog.Level     // default info
	Unwatched  bool           // flow files are reloaded only on request

	Operator *flows.Operator // connections, secrets and bounds on grants; nil without any
	Secrets  Secrets         // where the host reads secrets
	Proxy    string          // URL of the proxy that all connections use which state none; never from the environment
}

// Secrets is where the host reads secrets that are not in its environment or in files.
type Secrets struct {
	Identities []string // files with identities of age
	Vault      Vault
}

// Artifacts bounds the store of artifacts in bytes; 0 is the default of package artifacts.
type Artifacts struct {
	Size int64 // of all; default 10 GiB; with an external server, what its bucket has
	Max  int64 // of one; default 1 GiB
}

// Vault is a server of Vault or OpenBao. Without an address there is none.
type Vault struct {
	Address   string // "https://vault.internal:8200"
	TokenFile string
	Namespace string
	CA        string // PEM file; empty: the system's authorities
}

// settingsFile is the schema of flowhost.hcl. Paths are relative to its directory.
type settingsFile struct {
	NATS       *natsBlock      `hcl:"nats,block"`
	Limits     *limitsBlock    `hcl:"limits,block"`
	Journal    *journalBlock   `hcl:"journal,block"`
	Events     *eventsBlock    `hcl:"events,block"`
	History    *historyBlock   `hcl:"history,block"`
	Logs       *keptBlock      `hcl:"logs,block"`
	Triggers   *triggersBlock  `hcl:"triggers,block"`
	Artifacts  *artifactsBlock `hcl:"artifacts,block"`
	Data       string          `hcl:"data,optional"`
	Cache      string          `hcl:"cache,optional"`
	Memory     *hcl.Attribute  `hcl:"memory,optional"`
	Workers    *hcl.Attribute  `hcl:"workers,optional"`
	InFlight   *hcl.Attribute  `hcl:"in_flight,optional"`
	Grace      *hcl.Attribute  `hcl:"cancel_grace,optional"`
	Durability *hcl.Attribute  `hcl:"durability,optional"`
	Timeout    *hcl.Attribute  `hcl:"timeout,optional"`
	MaxTimeout *hcl.Attribute  `hcl:"max_timeout,optional"`
	LogLevel   *hcl.Attribute  `hcl:"log_level,optional"`
	Watch      *hcl.Attribute  `hcl:"watch,optional"`
	Secrets    *secretsBlock   `hcl:"secrets,block"`
	Egress     *egressBlock    `hcl:"egress,block"`
}

type secretsBlock struct {
	AgeIdentities []string    `hcl:"age_identities,optional"`
	Vault         *vaultBlock `hcl:"vault,block"`
}

type vaultBlock struct {
	Address   *hcl.Attribute `hcl:"address,optional"`
	TokenFile string         `hcl:"token_file,optional"`
	Namespace string         `hcl:"namespace,optional"`
	CA        string         `hcl:"ca,optional"`
}

type egressBlock struct {
	Proxy *hcl.Attribute `hcl:"proxy,optional"`
}

type natsBlock struct {
	URL      string         `hcl:"url,optional"`
	Creds    string         `hcl:"creds,optional"`
	AppCreds string         `hcl:"app_creds,optional"`
	Listen   string         `hcl:"listen,optional"`
	Replicas *hcl.Attribute `hcl:"replicas,optional"`
}

type limitsBlock struct {
	Memory    *hcl.Attribute `hcl:"memory,optional"`
	Output    *hcl.Attribute `hcl:"output,optional"`
	Log       *hcl.Attribute `hcl:"log,optional"`
	Fuel      *hcl.Attribute `hcl:"fuel,optional"`
	MaxMemory *hcl.Attribute `hcl:"max_memory,optional"`
	MaxOutput *hcl.Attribute `hcl:"max_output,optional"`
	MaxLog    *hcl.Attribute `hcl:"max_log,optional"`
	MaxFuel   *hcl.Attribute `hcl:"max_fuel,optional"`
	Opened    *hcl.Attribute `hcl:"opened,optional"`
}

type journalBlock struct {
	Size          *hcl.Attribute `hcl:"size,optional"`
	SnapshotEvery *hcl.Attribute `hcl:"snapshot_every,optional"`
}

type artifactsBlock struct {
	Size *hcl.Attribute `hcl:"size,optional"`
	Max  *hcl.Attribute `hcl:"max,optional"`
}

type triggersBlock struct {
	Size *hcl.Attribute `hcl:"size,optional"`
}

// keptBlock bounds a stream that drops its oldest messages.
type keptBlock struct {
	Size *hcl.Attribute `hcl:"size,optional"`
	Age  *hcl.Attribute `hcl:"age,optional"`
}

type eventsBlock struct {
	Of   *hcl.Attribute `hcl:"of,optional"`
	Size *hcl.Attribute `hcl:"size,optional"`
	Age  *hcl.Attribute `hcl:"age,optional"`
}

type historyBlock struct {
	PerFlow *hcl.Attribute `hcl:"per_flow,optional"`
	Size    *hcl.Attribute `hcl:"size,optional"`
	Age     *hcl.Attribute `hcl:"age,optional"`
}

func decodeSettings(source []byte, name string) (Settings, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(source, name, hcl.InitialPos)
	if diags.HasErrors() {
		return Settings{}, diags
	}
	var f settingsFile
	own, declared := split(file.Body.(*hclsyntax.Body))
	diags = append(diags, gohcl.DecodeBody(own, nil, &f)...)
	r := settingsReader{diags: diags}
	s := Settings{
		Data: inDir(name, f.Data), Cache: inDir(name, f.Cache),
		Unwatched: !r.flag(f.Watch, true),
		Memory:    r.memory(f.Memory),
		InFlight:  r.number(f.InFlight, maxInFlight), Durability: r.durability(f.Durability),
		LogLevel: LevelOf(r.oneOf(f.LogLevel, "info", "debug", "warn", "error")),
	}
	if n, ok := r.integer(f.Workers, 0, MaxWorkers); ok {
		s.Workers = &n
	}
	if d, ok := r.period(f.Grace, 0, "a duration"); ok {
		s.Grace = &d
	}
	if n := f.NATS; n != nil {
		s.NATSURL, s.NATSListen = n.URL, n.Listen
		s.NATSCreds, s.NATSAppCreds = inDir(name, n.Creds), inDir(name, n.AppCreds)
		s.Streams.Replicas = r.number(n.Replicas, maxReplicas)
	}
	r.streams(&f, &s)
	r.bounds(&f, &s)
	s.Ceilings.From = name
	r.reach(&f, &s, name)
	if len(declared) > 0 {
		s.Operator, diags = flows.ReadOperator(context.Background(), declared, name)
		r.diags = append(r.diags, diags...)
	}
	return s, r.diags
}

// split separates the blocks that are in the flow language from the host's own settings.
func split(body *hclsyntax.Body) (own *hclsyntax.Body, declared hclsyntax.Blocks) {
	rest := *body
	rest.Blocks = nil
	for _, b := range body.Blocks {
		if slices.Contains(flows.OperatorBlocks(), b.Type) {
			declared = append(declared, b)
			continue
		}
		rest.Blocks = append(rest.Blocks, b)
	}
	return &rest, declared
}

// reach reads how the host reaches secrets and other machines.
func (r *settingsReader) reach(f *settingsFile, s *Settings, name string) {
	if b := f.Secrets; b != nil {
		for _, file := range b.AgeIdentities {
			s.Secrets.Identities = append(s.Secrets.Identities, inDir(name, file))
		}
		if v := b.Vault; v != nil {
			s.Secrets.Vault = Vault{
				Address: r.url(v.Address, "https", "http"), TokenFile: inDir(name, v.TokenFile), Namespace: v.Namespace, CA: inDir(name, v.CA),
			}
		}
	}
	if b := f.Egress; b != nil {
		s.Proxy = r.url(b.Proxy, "http", "https")
	}
}

// streams reads the sizes and ages of streams.
func (r *settingsReader) streams(f *settingsFile, s *Settings) {
	c := &s.Streams
	if b := f.Journal; b != nil {
		c.JournalBytes, s.SnapshotEvery = r.size(b.Size), r.whole(b.SnapshotEvery)
	}
	if b := f.Triggers; b != nil {
		c.TriggerBytes = r.size(b.Size)
	}
	if b := f.Artifacts; b != nil {
		s.Artifacts = Artifacts{Size: r.size(b.Size), Max: r.size(b.Max)}
	}
	if b := f.Events; b != nil {
		c.EventBytes, c.EventAge, s.EventsOf = r.size(b.Size), r.duration(b.Age), r.oneOf(b.Of, "tasks", "runs", "none")
	}
	if b := f.History; b != nil {
		c.HistoryBytes, c.HistoryAge, c.HistoryPerFlow = r.size(b.Size), r.duration(b.Age), int64(r.whole(b.PerFlow))
	}
	if b := f.Logs; b != nil {
		c.LogBytes, c.LogAge = r.size(b.Size), r.duration(b.Age)
	}
}

func inDir(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
