package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// settingsName is the file of a folder of flows that holds the host's settings.
const settingsName = "flowhost.hcl"

// settings are those of the host. The zero value is all defaults.
type settings struct {
	natsURL      string // external server; empty: the embedded one
	natsCreds    string // file with credentials for it
	natsAppCreds string // file with those for the account of clients; empty: one account for both
	natsListen   string // where the embedded server listens; default bus.DefaultListen

	streams       bus.StreamConfig // sizes and ages; Replicas is for an external cluster
	eventsOf      string           // what FH_EVENTS has a copy of: "tasks" (default), "runs" or "none"
	snapshotEvery int              // events of the journal; default 50 000
	acceptLoss    bool             // of the journal's end

	data       string         // data folder; empty: nothing is kept
	cache      string         // folder of compiled modules; default: the user's cache folder
	workers    int            // attempts at once; default 4 × GOMAXPROCS
	durability natsd.Sync     // default strict
	timeout    time.Duration  // of attempts whose task states none; default 5m
	limits     run.Limits     // of tasks that state none
	ceilings   flows.Ceilings // of what tasks may state
	opened     int            // bytes of JSON that expressions look into; default flows.DefaultOpened
	logLevel   slog.Level     // default info
	unwatched  bool           // files of flows are loaded anew when that is asked for only
}

// settingsFile is the schema of flowhost.hcl. Paths are relative to its folder.
type settingsFile struct {
	NATS       *natsBlock     `hcl:"nats,block"`
	Limits     *limitsBlock   `hcl:"limits,block"`
	Journal    *journalBlock  `hcl:"journal,block"`
	Events     *eventsBlock   `hcl:"events,block"`
	History    *historyBlock  `hcl:"history,block"`
	Logs       *keptBlock     `hcl:"logs,block"`
	Triggers   *triggersBlock `hcl:"triggers,block"`
	Data       string         `hcl:"data,optional"`
	Cache      string         `hcl:"cache,optional"`
	Workers    *hcl.Attribute `hcl:"workers,optional"`
	Durability *hcl.Attribute `hcl:"durability,optional"`
	Timeout    *hcl.Attribute `hcl:"timeout,optional"`
	MaxTimeout *hcl.Attribute `hcl:"max_timeout,optional"`
	LogLevel   *hcl.Attribute `hcl:"log_level,optional"`
	Watch      *hcl.Attribute `hcl:"watch,optional"`
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

// readSettings reads the settings file that was named, or else the one in the
// folder of flows, if there is one.
func (a *app) readSettings(named, flowPath string) (settings, error) {
	name := named
	if name == "" {
		name = filepath.Join(folderOf(flowPath), settingsName)
		if _, err := os.Stat(name); err != nil {
			return settings{}, nil
		}
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return settings{}, exitf(exitInvalid, "settings: %w", err)
	}
	s, diags := decodeSettings(source, name)
	a.showDiagnostics(map[string]*hcl.File{name: {Bytes: source}}, diags)
	if diags.HasErrors() {
		return settings{}, quiet(exitInvalid)
	}
	return s, nil
}

// folderOf is a folder of flows, or the one that holds a flow file.
func folderOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return filepath.Dir(path)
}

func decodeSettings(source []byte, name string) (settings, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(source, name, hcl.InitialPos)
	if diags.HasErrors() {
		return settings{}, diags
	}
	var f settingsFile
	diags = append(diags, gohcl.DecodeBody(file.Body, nil, &f)...)
	r := settingsReader{diags: diags}
	s := settings{
		data: inFolder(name, f.Data), cache: inFolder(name, f.Cache),
		unwatched: !r.flag(f.Watch, true),
		workers:   r.number(f.Workers, maxWorkers), durability: r.durability(f.Durability),
		logLevel: levelOf(r.oneOf(f.LogLevel, "info", "debug", "warn", "error")),
	}
	if n := f.NATS; n != nil {
		s.natsURL, s.natsListen = n.URL, n.Listen
		s.natsCreds, s.natsAppCreds = inFolder(name, n.Creds), inFolder(name, n.AppCreds)
		s.streams.Replicas = r.number(n.Replicas, maxReplicas)
	}
	r.streams(&f, &s)
	r.bounds(&f, &s)
	s.ceilings.From = name
	return s, r.diags
}

// streams reads how much is kept.
func (r *settingsReader) streams(f *settingsFile, s *settings) {
	c := &s.streams
	if b := f.Journal; b != nil {
		c.JournalBytes, s.snapshotEvery = r.size(b.Size), r.whole(b.SnapshotEvery)
	}
	if b := f.Triggers; b != nil {
		c.TriggerBytes = r.size(b.Size)
	}
	if b := f.Events; b != nil {
		c.EventBytes, c.EventAge, s.eventsOf = r.size(b.Size), r.duration(b.Age), r.oneOf(b.Of, "tasks", "runs", "none")
	}
	if b := f.History; b != nil {
		c.HistoryBytes, c.HistoryAge, c.HistoryPerFlow = r.size(b.Size), r.duration(b.Age), int64(r.whole(b.PerFlow))
	}
	if b := f.Logs; b != nil {
		c.LogBytes, c.LogAge = r.size(b.Size), r.duration(b.Age)
	}
}

func inFolder(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
