package flows

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// Operator is what the settings of a host declare for flows: connections and secrets, and
// bounds on grants. Nil is a host without any of these.
type Operator struct {
	Connections []*access.Connection // sorted by name
	Secrets     []*access.Secret     // sorted by name
	Allow       []access.Allow       // in the order of the file
	From        string               // the file, "flowhost.hcl"

	places map[string]hcl.Range // of connections and secrets: "connection github"
}

// OperatorBlocks are the types of the blocks of a settings file that [ReadOperator] reads.
func OperatorBlocks() []string {
	_, blocks := reachspec.Settings.Names()
	return blocks
}

// ReadOperator reads the blocks of a settings file of which [OperatorBlocks] has the types.
// Paths in them are relative to the file's directory.
func ReadOperator(ctx context.Context, blocks hclsyntax.Blocks, file string) (*Operator, hcl.Diagnostics) {
	l := newLoader(ctx, Options{})
	s := &source{folder: folderOf(file)}
	m := &module{loader: l, src: s, def: new(run.Definition), base: &hcl.EvalContext{}, reach: newReach(""), settings: true}
	m.def.Vars = map[string]json.RawMessage{}
	c := lang.Decode(l.diags, &hclsyntax.Body{Blocks: blocks}, reachspec.Settings, diag.StartOf(file))
	m.declareReach(c.Blocks)
	m.decodeReach()
	o := &Operator{From: file, places: map[string]hcl.Range{}}
	for _, name := range keys(m.reach.connections) {
		x := m.reach.connections[name]
		o.Connections = append(o.Connections, &x.Connection)
		o.places["connection "+name] = x.Range
	}
	for _, name := range keys(m.reach.secrets) {
		x := m.reach.secrets[name]
		o.Secrets = append(o.Secrets, &x.Secret)
		o.places["secret "+name] = x.at
	}
	patterns := map[string]hcl.Range{}
	for _, b := range c.Blocks["allow"] {
		pattern, at := b.Labels[0], b.LabelRanges[0]
		if err := reachspec.Pattern(pattern); err != nil {
			m.diags.Add(RuleName, at, "Not a pattern of flows", "%q matches no flow: %s.", pattern, err)
		}
		if first, twice := patterns[pattern]; twice {
			m.diags.Duplicate("allow block", pattern, at, first)
			continue
		}
		patterns[pattern] = b.DefRange
		o.Allow = append(o.Allow, m.exprContext(nil).allow(b))
	}
	return o, l.diags.Sorted()
}

// allow reads an allow block.
func (s *exprContext) allow(b *hcl.Block) access.Allow {
	s, c := s.decodeAt(b, reachspec.Allow)
	d := reachDecoder{s, c}
	a := access.Allow{
		Pattern: b.Labels[0], From: diag.Place(b.DefRange),
		Connections: d.list("connections", as(reachspec.NotEmpty)),
		Files:       d.modes("files", reachspec.Directory), KV: d.modes("kv", reachspec.AnyBucket),
		Publish: d.list("publish", as(reachspec.Subject)), Request: d.list("request", as(reachspec.Subject)),
		Secrets: d.list("secrets", as(reachspec.NotEmpty)), Env: d.list("env", as(reachspec.AnyVariable)),
		Private: d.list("private", as(reachspec.Address)),
		Clock:   d.real("clock"), Random: d.real("random"),
		HTTP: d.httpGrant(), Sources: d.sources(),
	}
	a.Artifacts, _ = d.flag(c.Arg("artifacts"))
	if len(a.Files) > 0 {
		clean := make(map[string]access.Mode, len(a.Files))
		for directory, mode := range a.Files {
			clean[path.Clean(directory)] = mode
		}
		a.Files = clean
	}
	return a
}

// sources reads a sources block; nil without one.
func (d reachDecoder) sources() *access.Sources {
	inner, ok := d.inner("sources")
	if !ok {
		return nil
	}
	files := reachspec.FilePattern(d.module.src.folder)
	return &access.Sources{
		Env: inner.list("env", as(reachspec.VariablePattern)), Vault: inner.list("vault", as(reachspec.VaultPattern)),
		File: inner.list("file", files), Age: inner.list("age", files),
	}
}

// modes reads an object whose values are "ro" or "rw".
func (d reachDecoder) modes(name string, check func(string) error) map[string]access.Mode {
	a := d.content.Arg(name)
	v, ok := d.value(a, cty.Map(cty.String))
	if !ok || v.LengthInt() == 0 {
		return nil
	}
	places, values, out := d.keyPlaces(a, "name"), v.AsValueMap(), map[string]access.Mode{}
	for _, key := range keys(values) {
		at := placeOf(places, key, a)
		write, ok := d.folderMode(key, values[key], at)
		if !ok || !d.fits(a, at, key, check) {
			continue
		}
		out[key] = access.ReadOnly
		if write {
			out[key] = access.ReadWrite
		}
	}
	return out
}

// placeOf is where a key of an object is written, or where the object is.
func placeOf(places map[string]hcl.Range, key string, a *hcl.Attribute) hcl.Range {
	if at, known := places[key]; known {
		return at
	}
	return a.Expr.Range()
}

// real is a source of time or random numbers, empty for the virtual one.
func (d reachDecoder) real(name string) string {
	if d.word(name, "") == access.Real {
		return access.Real
	}
	return ""
}

// httpGrant reads an http block; nil without one.
func (d reachDecoder) httpGrant() *access.HTTPGrant {
	inner, ok := d.inner("http")
	if !ok {
		return nil
	}
	inner.emptyAllow()
	return &access.HTTPGrant{
		Allow: inner.list("allow", reachspec.RequestRule), Private: inner.list("private", as(reachspec.Address)),
		Redirects: inner.redirects(), MaxBody: inner.maxBody(),
	}
}

func (o *Operator) connection(name string) *access.Connection {
	if o == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(o.Connections, name, func(c *access.Connection, name string) int { return cmp.Compare(c.Name, name) })
	if !ok {
		return nil
	}
	return o.Connections[i]
}

func (o *Operator) secret(name string) *access.Secret {
	if o == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(o.Secrets, name, func(s *access.Secret, name string) int { return cmp.Compare(s.Name, name) })
	if !ok {
		return nil
	}
	return o.Secrets[i]
}

func (o *Operator) connectionNames() []string {
	var names []string
	if o != nil {
		for _, c := range o.Connections {
			names = append(names, c.Name)
		}
	}
	return names
}

// place is where a connection or secret is declared.
func (o *Operator) place(kind, name string) (hcl.Range, bool) {
	if o == nil {
		return hcl.Range{}, false
	}
	if at, ok := o.places[kind+" "+name]; ok {
		return at, true
	}
	taken := kind == "connection" && o.connection(name) != nil || kind == "secret" && o.secret(name) != nil
	return diag.StartOf(cmp.Or(o.From, DefaultSettings)), taken
}

// DefaultSettings is the name of the settings in messages, if they have none.
const DefaultSettings = "flowhost.hcl"

// Allow returns what the settings of the host allow a flow, see [access.Select].
func (s *Set) Allow(flow string) (*access.Allow, error) { return s.operator.allow(flow) }

func (o *Operator) allow(flow string) (*access.Allow, error) {
	if o == nil {
		return nil, nil
	}
	return access.Select(o.Allow, flow)
}

// checkAllowed reports what a task of this flow would be granted and the operator does not
// allow: the call would be denied.
func (s *exprContext) checkAllowed(g *run.Grants, from *grant) {
	if s.module.restored != nil || s.decoder == nil || from == nil || from.broken || g.IsZero() {
		return
	}
	flow := s.decoder.flow.Name
	allow, err := s.module.options.Operator.allow(flow)
	if err != nil {
		s.refuse(s.decoder.flow.Range, "Which allow block?", fmt.Sprintf("%s.", diag.Sentence(err.Error())))
		return
	}
	if allow != nil {
		for _, f := range g.Files {
			mode := access.ReadOnly
			if f.Write {
				mode = access.ReadWrite
			}
			if !allow.IncludesFiles(f.Path, mode) {
				s.notAllowed(allow, flow, from.place("files"), fmt.Sprintf("directory %q as %q", "./"+f.Path, mode), fmt.Sprintf("files = { %q = %q }", "./"+f.Path, mode))
			}
		}
	}
	for _, x := range allow.Excess(&g.Grants, s.module.granted(g.Connections)) {
		key := x.Key
		if key == "private" {
			key = "connections"
		}
		s.notAllowed(allow, flow, from.place(key), x.Entry, x.Line)
	}
	s.checkSources(allow, flow, g)
}

// checkSources reports secrets that a task would use or be handed, and that the operator does
// not allow from where they are.
func (s *exprContext) checkSources(allow *access.Allow, flow string, g *run.Grants) {
	m := s.module
	names := slices.Collect(maps.Values(g.Secrets))
	for _, c := range m.granted(g.Connections) {
		if !c.Operator {
			names = append(names, c.Secrets()...)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if x := m.reach.secrets[name]; x != nil {
			if excess := allow.SourceExcess(&x.Secret); excess != nil {
				s.notAllowed(allow, flow, x.at, fmt.Sprintf("%s, of secret.%s", excess.Entry, name), excess.Line)
			}
		}
	}
}

// granted are the connections of the module's files among those of these names.
func (m *module) granted(names []string) []*access.Connection {
	var all []*access.Connection
	for _, name := range names {
		if c := m.reach.connections[name]; c != nil {
			all = append(all, &c.Connection)
		} else if c := m.options.Operator.connection(name); c != nil {
			public := *c
			public.Private = nil // they have the operator's key
			all = append(all, &public)
		}
	}
	return all
}

// notAllowed reports an entry of a grant, with the line that the operator would add.
func (s *exprContext) notAllowed(allow *access.Allow, flow string, at hcl.Range, entry, line string) {
	o := s.module.options.Operator
	settings := DefaultSettings
	if o != nil {
		settings = cmp.Or(o.From, DefaultSettings)
	}
	var detail string
	switch {
	case allow == nil:
		detail = fmt.Sprintf("Flow %q is granted %s, which the operator of the host must allow, too. Add a block allow %q to %s, with %s; it then decides on all grants of the flow, so name there whatever else the flow may use.",
			flow, entry, flow, settings, line)
	case allow.From == "":
		detail = fmt.Sprintf("Flow %q is granted %s, and no allow block of %s matches the flow, so that it may use nothing. Add a block allow %q there, with %s, or leave the grant out.",
			flow, entry, settings, flow, line)
	default:
		detail = fmt.Sprintf("Flow %q is granted %s, and allow %q (%s) does not have it. Add %s there, or leave the grant out.",
			flow, entry, allow.Pattern, allow.From, line)
	}
	s.refuse(at, "Not allowed by the operator", detail)
}

// refuse reports what is refused to a flow, once.
func (s *exprContext) refuse(at hcl.Range, summary, detail string) {
	key := at.String() + detail
	if s.module.refused[key] {
		return
	}
	if s.module.refused == nil {
		s.module.refused = map[string]bool{}
	}
	s.module.refused[key] = true
	s.diags.Add(RuleAllow, at, summary, "%s", detail)
}

// notePolicies records a digest of what the tasks of each flow are granted, and of what the
// operator allows the flow. A definition that is loaded again keeps those that it has.
func (m *module) notePolicies(flows []*Flow) {
	if m.restored != nil {
		m.def.Policies = m.restored.Policies
		return
	}
	for _, f := range flows {
		hash, granted := sha256.New(), false
		for _, t := range f.AllTasks() {
			if !t.Grants.IsZero() {
				granted = true
				writeJSON(hash, t.Name)
				writeJSON(hash, t.Grants)
			}
		}
		if !granted {
			continue
		}
		if allow, err := m.options.Operator.allow(f.Name); err == nil { // else it is reported
			writeJSON(hash, allow)
		}
		if m.def.Policies == nil {
			m.def.Policies = map[string]string{}
		}
		m.def.Policies[f.Name] = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	}
}

// writeJSON writes a value of strings, numbers, lists and maps of these.
func writeJSON(w io.Writer, v any) {
	_ = json.NewEncoder(w).Encode(v)
}
