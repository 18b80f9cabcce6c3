package flows

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// module is one directory's flow files on their way to flows.
type module struct {
	*loader
	src      *source
	restored *run.Definition // nil unless it is being restored
	def      *run.Definition

	variables map[string]*declaration
	locals    map[string]*local
	plugins   map[string]*plugin

	limitBlocks map[string]*declaredLimit
	reach       *reach // connections and secrets
	settings    bool   // it is the settings of a host, in which nothing is declared to refer to
	alone       bool   // it is one grant, beside which nothing is declared

	defaults policy
	decoders map[string]*flowDecoder // flows by short name

	written []grantedFolder // all that grants let guests write to
	missing []grantedFolder // those to be read that are not there

	// broken is set when a file could not be parsed: it may declare
	// names that are missing.
	broken bool

	base *hcl.EvalContext // var and local, with all functions

	resolvingNow []*local // the locals that are being resolved, outermost first

	refused map[string]bool // diagnostics about allow blocks that are there already

	tests map[string]hcl.Range // by name, of all files of tests
}

// load decodes one module and adds its flows to the set.
func (l *loader) load(s *source, restored *run.Definition) {
	m := &module{
		loader: l, src: s, restored: restored,
		def:       &run.Definition{Prefix: s.prefix, Files: map[string][]byte{}, Vars: map[string]json.RawMessage{}, Plugins: map[string]string{}},
		variables: map[string]*declaration{},
		locals:    map[string]*local{},
		plugins:   map[string]*plugin{},
		decoders:  map[string]*flowDecoder{},

		limitBlocks: map[string]*declaredLimit{},
		reach:       newReach(s.prefix),
	}
	m.base = &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: m.deployFunctions()}
	m.checkPrefix()
	m.broken = s.broken
	for name := range s.elsewhere {
		l.declared[name] = true
	}
	blocks := m.parse()
	m.declare(blocks)
	m.assignVariables(m.values())
	m.evaluateLocals()
	m.decodeReach()
	m.decodePlugins()
	m.decodeLimits()
	m.decodeDefaults(blocks["defaults"])
	m.decodeFlows(blocks["flow"])
	m.checkMissing()
	l.modules = append(l.modules, m)
}

func (m *module) checkPrefix() {
	if m.src.prefix == "" {
		return
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(m.src.prefix, "/"), "/") {
		if !isToken(part) {
			m.diags.Add(RuleName, m.src.at(), "Directory name cannot be used",
				"The directory %q is part of the names of its flows, which are subjects on NATS: use letters, digits, - and _ only.", part)
		}
	}
}

// isToken reports whether a name can be one token of a NATS subject and one
// part of a path.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// parse reads all flow files and gives their blocks by type, in order of files.
func (m *module) parse() map[string][]*hcl.Block {
	all := map[string][]*hcl.Block{}
	for _, f := range m.src.files {
		m.def.Files[f.name] = f.bytes
		m.budget.Grant(loadCostPerByte * len(f.bytes))
		parsed, diags := m.parsed.File(f.bytes, f.display)
		m.set.files[f.display] = &hcl.File{Bytes: f.bytes}
		if m.diags.Take(RuleSyntax, diags) {
			m.broken, m.unread = true, true
			continue
		}
		m.set.files[f.display] = parsed
		c := lang.Decode(m.diags, parsed.Body, fileSchema, diag.StartOf(f.display))
		for kind, blocks := range c.Blocks {
			all[kind] = append(all[kind], blocks...)
		}
	}
	return all
}

// declare collects the names of the module before anything refers to them.
func (m *module) declare(blocks map[string][]*hcl.Block) {
	for _, b := range blocks["variable"] {
		m.declareVariable(b)
	}
	for _, b := range blocks["locals"] {
		for _, a := range lang.Attributes(m.diags, b.Body, "a locals block") {
			m.declareLocal(m.locals, a)
		}
	}
	for _, b := range blocks["plugin"] {
		m.declarePlugin(b)
	}
	for _, b := range blocks["limit"] {
		m.declareLimit(b)
	}
	m.declareReach(blocks)
	for _, b := range blocks["flow"] {
		m.declareFlow(b)
	}
}

// label is a block's last label, checked to be a name that expressions can use.
func (m *module) label(b *hcl.Block) (string, hcl.Range, bool) {
	last := len(b.Labels) - 1
	name, at := b.Labels[last], b.LabelRanges[last]
	if !isToken(name) || !hclsyntax.ValidIdentifier(name) {
		m.diags.Add(RuleName, at, "Name cannot be used",
			"%q is not a name that expressions can refer to: begin with a letter and use letters, digits, - and _ only.", name)
		return name, at, false
	}
	return name, at, true
}
