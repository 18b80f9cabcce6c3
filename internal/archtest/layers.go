package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the path of the module that the tables describe.
const Module = "github.com/flowhost/flowhost"

// Layer states what the packages of one directory, and of its subdirectories
// without a row, may import.
type Layer struct {
	Folder   string
	Imports  []string // directories of this module, each with its subdirectories
	Outside  bool     // may import third-party modules, as far as [Owners] let it
	Never    []string // packages of the standard library
	TestOnly bool     // may be imported by tests only, and by its own directory
	Reason   string   // why it is so, as the end of a sentence
}

// Layers is the table: imports point down only, and packages of one layer do not
// import each other. A directory's own packages may always import each other.
var Layers = []Layer{
	// L0
	{Folder: "internal/jsonscan",
		Reason: "jsonscan reads bytes: whoever takes JSON from outside may import it"},
	{Folder: "run", Imports: []string{"internal/jsonscan"}, Never: []string{"net/http"},
		Reason: "run is the vocabulary that every package speaks: whatever it imported, all would import"},
	{Folder: "dag",
		Reason: "dag knows a graph of ids and nothing of what they represent"},
	{Folder: "scheduler",
		Reason: "scheduler hands out values when they are due and must not know whose they are"},
	{Folder: "internal/fairq",
		Reason: "fairq knows flows, priorities and limits by name and count only, so that the engine, the host and the simulation can share it"},
	{Folder: "sdk/abi",
		Reason: "sdk/abi is the contract that guests and the host share: it holds numbers and names only"},

	{Folder: "internal/mask", Imports: []string{"internal/jsonscan"}, Never: []string{"net/http"},
		Reason: "mask knows values and text: whoever writes logs, outputs, errors or events may import it"},

	{Folder: "internal/suggest",
		Reason: "suggest compares strings: every package that reports an unknown name may import it"},

	{Folder: "internal/httprule", Outside: true,
		Reason: "httprule is the one reader of hosts and paths: the flow language and the dialer share it, and it knows neither"},

	// L1
	{Folder: "flows/internal", Imports: []string{"internal/suggest"}, Outside: true,
		Reason: "the leaves of flows know HCL, JSON and cty values, and nothing of flows and runs"},
	{Folder: "flows/internal/reachspec", Imports: []string{"run", "internal/httprule", "flows/internal"},
		Reason: "reachspec knows the words and texts of what calls may reach, and gives them to flows alone"},
	{Folder: "flows", Imports: []string{"run", "dag", "scheduler", "flows/internal", "internal/suggest"}, Outside: true,
		Reason: "flows turns files into checked flows, without a host, a bus or an engine: it asks its Catalog"},
	{Folder: "host", Imports: []string{"run", "sdk/abi", "internal/suggest"}, Outside: true, Never: []string{"net/http"},
		Reason: "host runs one call of a module and must be usable without flows, engine and NATS"},
	{Folder: "bus", Imports: []string{"run", "bus/natsd"}, Outside: true,
		Reason: "bus speaks NATS on one side and the words of run on the other"},
	{Folder: "bus/natsd", Imports: []string{"run", "bus"}, Outside: true,
		Reason: "natsd runs the embedded server, which clients and the other parts of bus know as a connection only"},
	{Folder: "bus/kv", Imports: []string{"run/access", "bus/internal"}, Outside: true,
		Reason: "kv performs operations of guests, who must not reach flowhost's own streams by a mistake in it"},
	{Folder: "bus/messages", Imports: []string{"run", "bus/internal"}, Outside: true,
		Reason: "messages performs operations of guests, who must not reach flowhost's own subjects by a mistake in it"},
	{Folder: "bus/artifacts", Imports: []string{"run/access", "bus"}, Outside: true,
		Reason: "artifacts keeps bytes by digest: who refers to them is passed in"},
	{Folder: "bus/internal/bustest", Imports: []string{"run", "bus", "internal/testkit"}, Outside: true, TestOnly: true,
		Reason: "bustest holds what tests of several packages of bus share"},
	{Folder: "sdk", Imports: []string{"sdk/abi"},
		Reason: "what the SDK imports ends up in the wasm of every plugin"},
	{Folder: "sdk/sdktest", Imports: []string{"sdk", "run"},
		Reason: "sdktest runs natively in tests and shows outcomes as the host has them, without needing one"},

	{Folder: "internal/reach", Imports: []string{"run"},
		Reason: "reach decides by policies and hands operations on, whatever performs them"},
	{Folder: "internal/reach/gate", Imports: []string{"run"}, Outside: true, Never: []string{"net/http"},
		Reason: "gate decides when an operation of a flow passes, whatever the operation does"},
	{Folder: "internal/reach/httpreach", Imports: []string{"run", "internal/httprule", "internal/jsonscan", "internal/reach/gate", "internal/reach/netreason"}, Outside: true,
		Reason: "httpreach performs requests that are handed to it, and knows neither guests nor flows, only what they may reach"},
	{Folder: "internal/reach/secrets", Imports: []string{"run"}, Outside: true,
		Reason: "secrets reads values for the host: flows, connections and masking reach it through run/access and its Config"},

	{Folder: "internal/reach/mail", Imports: []string{"run", "internal/mask", "internal/reach/gate", "internal/reach/netreason"}, Outside: true, Never: []string{"net/http"},
		Reason: "mail sends one message for an operation: policies, secrets and the dialer reach it through run/access and its Config"},
	{Folder: "internal/reach/sqlreach", Imports: []string{"run", "internal/jsonscan", "internal/reach/gate"}, Outside: true, Never: []string{"net/http"},
		Reason: "sqlreach performs operations of the vocabulary on databases, and knows neither guests nor flows"},

	// L2
	{Folder: "engine", Imports: []string{"run", "dag", "scheduler", "flows", "internal/fairq", "engine/memory", "engine/internal/rerun"}, Never: []string{"net/http"},
		Reason: "engine reaches hosts, journals and observers through its own seams only"},
	{Folder: "engine/memory", Imports: []string{"run"},
		Reason: "the journal and the store in memory keep bytes, and are used by what needs no engine"},
	{Folder: "engine/internal/rerun", Imports: []string{"run", "flows"},
		Reason: "planning a rerun is a function of the record, the flow and the request"},

	{Folder: "internal/schedsim", Imports: []string{"run", "dag", "scheduler", "flows", "internal/fairq"}, Never: []string{"net/http"},
		Reason: "schedsim needs the rules of what fires and runs, and nothing that fires or runs: no engine, host or bus"},

	{Folder: "internal/virtual", Imports: []string{"run", "dag", "scheduler", "flows", "engine"}, Never: []string{"net/http"},
		Reason: "virtual is the engine in virtual time: a script decides what calls do, no host or bus"},

	{Folder: "internal/flowtest", Imports: []string{"run", "flows", "engine", "internal/virtual"}, Outside: true, Never: []string{"net/http"},
		Reason: "a test of flows is a virtual run with mocks: its caller passes the modules that it may call"},

	{Folder: "internal/flowsim", Imports: []string{"run", "flows", "internal/virtual"}, Outside: true, Never: []string{"net/http"},
		Reason: "flowsim makes virtual runs whose calls are drawn at random: its caller passes modules and records of runs"},

	// L3
	{Folder: "web", Imports: []string{"run"},
		Reason: "web shows and commands runs through its own seams only"},
	{Folder: "plugins", Imports: []string{"sdk"}, Outside: true,
		Reason: "a plugin is a guest: it is built for wasm, with the SDK and nothing of the host"},
	{Folder: "examples", Imports: []string{"sdk"},
		Reason: "the plugins of the examples are guests, and show what an author needs: the SDK alone"},

	// L4
	{Folder: "cmd", Imports: []string{"run", "dag", "scheduler", "flows", "host", "bus", "engine", "web", "internal/suggest", "internal/mask", "internal/reach", "internal/schedsim", "internal/flowtest", "internal/flowsim", "plugins"}, Outside: true,
		Reason: "cmd puts the parts of the host together; plugins and examples reach it as wasm files, those of plugins/std as bytes of its package"},

	{Folder: "internal", Imports: []string{"run", "dag", "scheduler", "flows", "host", "bus", "engine", "web", "sdk"},
		Outside: true, TestOnly: true,
		Reason: "internal, except the packages with a row, holds what tests, benchmarks and checks need"},
}

// Owner is who may import a third-party module. Those without a row are free for
// every directory that may import from outside at all.
type Owner struct {
	Module  string   // its path, or the beginning that several share
	Folders []string // who may import it
	Reason  string
}

// Owners is the table of modules that are kept in one place.
var Owners = []Owner{
	{Module: "github.com/tetratelabs/wazero", Folders: []string{"host", "internal"},
		Reason: "the WebAssembly runtime can be exchanged in host alone"},
	{Module: "github.com/nats-io/nats-server", Folders: []string{"bus/natsd", "bus/internal/bustest", "internal"},
		Reason: "the embedded server and the form of its files are known to bus/natsd alone"},
	{Module: "github.com/nats-io", Folders: []string{"bus", "bus/kv", "bus/messages", "bus/artifacts", "bus/natsd", "bus/internal/bustest", "cmd", "internal"},
		Reason: "NATS is one way to keep a journal and to hear of triggers, and it is known to bus alone"},
	{Module: "go.etcd.io/bbolt", Folders: []string{"bus", "internal"},
		Reason: "the index of the history is a file that can be made anew, and how it is kept is known to bus alone"},
	{Module: "github.com/hashicorp", Folders: []string{"flows", "flows/internal", "cmd", "internal", "internal/flowtest", "internal/flowsim"},
		Reason: "HCL is how flows are written, not how they run: everything after flows speaks JSON"},
	{Module: "github.com/zclconf", Folders: []string{"flows", "flows/internal", "internal"},
		Reason: "cty values stay inside flows: everything after it speaks JSON"},
	{Module: "golang.org/x/net/idna", Folders: []string{"internal/httprule"},
		Reason: "a host has one canonical form: whoever needs it asks httprule"},
	{Module: "golang.org/x/net/publicsuffix", Folders: []string{"internal/httprule"},
		Reason: "which hosts a wildcard may match is decided in httprule alone"},
	{Module: "code.dny.dev/ssrf", Folders: []string{"internal/reach/httpreach"},
		Reason: "which addresses are public is decided where they are dialed"},
	{Module: "filippo.io/age", Folders: []string{"internal/reach/secrets"},
		Reason: "the form of encrypted files and of the operator's identities is known to secrets alone"},
	{Module: "github.com/jackc/pgx", Folders: []string{"internal/reach/sqlreach"},
		Reason: "how PostgreSQL is spoken to is known to sqlreach alone"},
	{Module: "github.com/go-sql-driver", Folders: []string{"internal/reach/sqlreach"},
		Reason: "how MySQL is spoken to is known to sqlreach alone"},
	{Module: "modernc.org/sqlite", Folders: []string{"internal/reach/sqlreach"},
		Reason: "SQLite is one more database of flows: what the host stores itself is not in it"},
	{Module: "github.com/spf13", Folders: []string{"cmd"},
		Reason: "flags and commands belong to the program"},
}

// Violation is one place that breaks a rule.
type Violation struct {
	Place string // "host/pool.go:12"
	What  string
	Why   string
}

func (v Violation) String() string { return v.Place + ": " + v.What + ": " + v.Why }

// CheckImports holds the imports of all files that are not tests against the
// tables. Tests may import what they like: they are not part of the program.
func CheckImports(packages []*Package, layers []Layer, owners []Owner) []Violation {
	var found []Violation
	for _, p := range packages {
		if p.testOnly() {
			continue
		}
		layer := layerOf(layers, p.Folder)
		if layer == nil {
			found = append(found, Violation{p.Folder, "the directory is not in the table of layers",
				"add a row to archtest.Layers that states what it may import, and why"})
			continue
		}
		for _, f := range p.Files {
			if !f.Test {
				found = append(found, checkFile(f, layer, layers, owners)...)
			}
		}
	}
	return found
}

func checkFile(f *File, layer *Layer, layers []Layer, owners []Owner) []Violation {
	var found []Violation
	for _, i := range f.Imports {
		if why := forbidden(i.Path, layer, layers, owners); why != "" {
			found = append(found, Violation{fmt.Sprintf("%s:%d", f.Path, i.Line), layer.Folder + " must not import " + i.Path, why})
		}
	}
	return found
}

// forbidden is the reason why layer must not import the path, or "".
func forbidden(imported string, layer *Layer, layers []Layer, owners []Owner) string {
	if folder, own := strings.CutPrefix(imported, Module+"/"); own {
		return forbiddenFolder(folder, layer, layers)
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		if slices.Contains(layer.Never, imported) {
			return layer.Reason
		}
		return ""
	}
	if !layer.Outside {
		return "only the standard library is allowed there, " + layer.Reason
	}
	for _, o := range owners {
		if within(imported, o.Module) && !slices.Contains(o.Folders, layer.Folder) {
			return o.Reason
		}
	}
	return ""
}

func forbiddenFolder(folder string, layer *Layer, layers []Layer) string {
	target := layerOf(layers, folder)
	switch {
	case target == nil || target.Folder == layer.Folder:
		return "" // a directory that is not in the table is reported itself
	case target.TestOnly:
		return "only tests may: " + target.Reason
	case slices.ContainsFunc(layer.Imports, func(parent string) bool { return within(folder, parent) }):
		return ""
	}
	return layer.Reason
}

// layerOf finds the row with the longest directory that contains the given one.
func layerOf(layers []Layer, folder string) *Layer {
	var best *Layer
	for i, l := range layers {
		if within(folder, l.Folder) && (best == nil || len(l.Folder) > len(best.Folder)) {
			best = &layers[i]
		}
	}
	return best
}
