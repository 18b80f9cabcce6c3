package flows

import (
	"cmp"
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

// flowDecoder is a flow being decoded: its names, before what they stand for.
type flowDecoder struct {
	flow     *Flow
	block    *hcl.Block
	content  *lang.Content
	context  *exprContext
	params   map[string]*Param
	locals   map[string]*local
	tasks    map[string]*Task
	groups   map[string]*Group
	named    map[string]*hcl.Block // tasks, waits and groups
	outputs  map[string]ref        // of these, by the name that runs have for them
	triggers map[string]*Trigger
	base     *hcl.EvalContext // the module's values and flow.name
	pending  []pendingTask
	finally  *lang.Content // of the block, nil without one
	clean    bool          // nothing was wrong with the names

	stated      map[*Trigger]*hcl.Attribute // the argument params, also where it is wrong; nil without one
	typed       map[string]*typed           // by task
	localShapes map[*local]*jsonschema.Shape
	contract    *contract        // of the flow as a sub-flow; nil until somebody asks
	items       map[*Task]*items // of those with for_each
	groupShapes map[*Group]*jsonschema.Shape

	certainTasks map[Part][]bool
	nullParams   map[string]string // nil until somebody asks
}

// pendingTask is a declared task whose block is still to be decoded.
type pendingTask struct {
	task  *Task
	block *hcl.Block
}

// declareFlow notes a flow and the names in it.
func (m *module) declareFlow(b *hcl.Block) {
	name, at, ok, from := b.Labels[0], b.LabelRanges[0], true, m.diags.Count()
	if !isToken(name) {
		m.diags.Add(RuleName, at, "Name cannot be used",
			"The flow's name %q is a subject on NATS: use letters, digits, - and _ only.", name)
		ok = false
	}
	if first := m.decoders[name]; first != nil {
		m.diags.Duplicate("flow", name, at, first.flow.Range)
		return
	}
	d := &flowDecoder{
		flow:  &Flow{Name: m.src.prefix + name, Labels: map[string]string{}, Definition: m.def, Range: b.DefRange},
		block: b, params: map[string]*Param{}, locals: map[string]*local{},
		tasks: map[string]*Task{}, groups: map[string]*Group{}, named: map[string]*hcl.Block{}, outputs: map[string]ref{},
		triggers: map[string]*Trigger{},
		stated:   map[*Trigger]*hcl.Attribute{}, typed: map[string]*typed{}, localShapes: map[*local]*jsonschema.Shape{}, items: map[*Task]*items{}, groupShapes: map[*Group]*jsonschema.Shape{}, certainTasks: map[Part][]bool{},
	}
	if ok {
		m.decoders[name] = d
	}
	d.context = &exprContext{module: m, diags: m.diags, decoder: d, schema: flowSchema}
	d.content = lang.Decode(m.diags, b.Body, flowSchema, b.DefRange)
	for _, l := range d.content.Blocks["locals"] {
		for _, a := range lang.Attributes(m.diags, l.Body, "a locals block") {
			d.declareLocal(a)
		}
	}
	d.declareSection(PartMain, d.content)
	for _, part := range []Part{PartOnFailure, PartOnSuccess, PartFinally} {
		if hook := d.content.One(string(part)); hook != nil {
			d.declareSection(part, lang.Decode(m.diags, hook.Body, hooks[part], hook.DefRange))
		}
	}
	d.clean = !m.diags.Failed(from)
}

func (d *flowDecoder) declareLocal(a *hcl.Attribute) {
	m := d.context.module
	if first := m.locals[a.Name]; first != nil {
		m.diags.Duplicate("local", a.Name, a.NameRange, first.at)
		return
	}
	before := len(d.locals)
	m.declareLocal(d.locals, a)
	if len(d.locals) > before {
		d.locals[a.Name].context = d.context
	}
}

// declareSection notes the tasks of a part of the flow.
func (d *flowDecoder) declareSection(part Part, c *lang.Content) {
	s := &Section{Part: part, Timeout: DefaultFinally}
	d.flow.Sections = append(d.flow.Sections, s)
	d.declareMembers(c, s, nil)
	if part == PartMain {
		d.flow.Tasks = s.Tasks
	}
	if part == PartFinally {
		d.finally = c
	}
}

func (d *flowDecoder) declareTask(b *hcl.Block, of *Section, in *Group) *Task {
	name, ok := d.declareName(b)
	if !ok {
		return nil
	}
	t := &Task{Name: name, Range: b.DefRange, RunOn: RunOnSuccess, Group: in, part: of.Part}
	t.output = d.settles(name, rootWord("task"), name)
	return d.declared(t, b, of)
}

// declared adds a task or a wait to its part of the flow.
func (d *flowDecoder) declared(t *Task, b *hcl.Block, of *Section) *Task {
	t.number = t.output.number
	d.tasks[t.Name] = t
	d.pending = append(d.pending, pendingTask{t, b})
	of.Tasks = append(of.Tasks, t)
	return t
}

// declareName notes the name of a task, a wait or a group. They are all different:
// a group's output has its members by name.
func (d *flowDecoder) declareName(b *hcl.Block) (string, bool) {
	m := d.context.module
	name, at, ok := m.label(b)
	if !ok {
		return "", false
	}
	first, taken := d.named[name]
	switch {
	case !taken:
		d.named[name] = b
		return name, true
	case first.Type == b.Type:
		m.diags.Duplicate(b.Type, name, at, first.DefRange)
	default:
		m.diags.Add(RuleDuplicate, at, "Duplicate name", "There is a %s %q already, at %s, and the names of tasks, waits and groups are all different. Rename one of the two.", first.Type, name, diag.Place(first.DefRange))
	}
	return "", false
}

// settles numbers something whose end a run makes visible to expressions, under
// the name that runs have for it, and gives the reference to its output.
func (d *flowDecoder) settles(name string, word *root, short string) ref {
	w := ref{root: word, name: short, attribute: "output", number: len(d.outputs)}
	if word.bit == rootWait {
		w.attribute = "payload"
	}
	d.outputs[name] = w
	return w
}

// decodeFlows decodes the declared flows in order of the files and adds them to
// the set.
func (m *module) decodeFlows(blocks []*hcl.Block) {
	var flows []*Flow
	for _, b := range blocks {
		if d := m.decoders[b.Labels[0]]; d != nil && d.block == b {
			d.decode()
			flows = append(flows, d.flow)
		}
	}
	m.checkFlows(flows)
	m.notePolicies(flows)
	digest := m.def.Digest()
	for _, f := range flows {
		f.DefinitionDigest = digest
		if !m.src.lends(f.Range.Filename) {
			m.set.reachOf[f.Name] = m.reach
			m.publish(f)
		}
	}
}

// decode reads everything in the flow's block. Params and locals come first:
// the rest refers to them.
func (d *flowDecoder) decode() {
	m, s, c, f := d.context.module, d.context, d.content, d.flow
	d.base = m.base.NewChild()
	d.base.Variables = map[string]cty.Value{"flow": cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(f.Name)})}
	f.base = m.runContext(d.base.Variables["flow"])
	f.opened = cmp.Or(m.options.Opened, DefaultOpened)

	for _, b := range c.Blocks["param"] {
		d.decodeParam(b)
	}
	f.params, f.tasks, f.groups, f.outputs = d.params, d.tasks, d.groups, d.outputs
	for _, name := range keys(d.locals) {
		m.resolve(d.locals[name])
	}
	f.Description, _ = s.text(c.Arg("description"))
	f.Timeout, _ = s.duration(c.Arg("timeout"))
	f.Priority = s.priority(c.Arg("priority"), 0)
	if v, ok := s.value(c.Arg("labels"), cty.Map(cty.String)); ok {
		for name, label := range v.AsValueMap() {
			if !label.IsNull() {
				f.Labels[name] = label.AsString()
			}
		}
	}
	for _, b := range c.Blocks["trigger"] {
		d.decodeTrigger(b)
	}
	f.payloads = payloadTypes(f.Triggers)
	if b := c.One("concurrency"); b != nil {
		d.decodeConcurrency(b)
	}
	d.decodeGroups()
	d.decodeTasks()
	f.LimitedBy = limitsOf(f.AllTasks())
	d.decodeFinally()
	for _, b := range c.Blocks["output"] {
		d.decodeOutput(b)
	}
	if len(f.Tasks) == 0 && d.clean {
		m.diags.Add(RuleMissing, f.Range, "Flow without tasks", "A flow needs at least one task block.")
	}
	d.connect()
}

// runContext is what expressions see in runs beside run values: no file
// functions.
func (m *module) runContext(flow cty.Value) *hcl.EvalContext {
	ctx := &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": m.base.Variables["var"]},
		Functions: m.runFunctions,
	}
	if flow != cty.NilVal {
		ctx.Variables["flow"] = flow
	}
	return ctx
}

func (d *flowDecoder) decodeParam(b *hcl.Block) {
	s := d.context
	name, at, ok := s.module.label(b)
	if !ok {
		return
	}
	if first := d.params[name]; first != nil {
		s.diags.Duplicate("param", name, at, first.Range)
		return
	}
	decl := s.decodeDeclaration(b, "param", name)
	p := &Param{
		Name: name, Description: decl.description, Type: decl.typ, Required: decl.defaultValue == cty.NilVal,
		Sensitive: decl.sensitive, Range: b.DefRange, declaration: decl,
	}
	if !p.Required {
		p.Default, _ = encodeJSON(decl.defaultValue)
	}
	d.params[name] = p
	d.flow.Params = append(d.flow.Params, p)
}

func (d *flowDecoder) decodeFinally() {
	if d.finally == nil {
		return
	}
	s := d.context.within(hooks[PartFinally])
	if limit, ok := s.duration(d.finally.Arg("timeout")); ok {
		d.flow.Section(PartFinally).Timeout = limit
	}
}

func (d *flowDecoder) decodeConcurrency(b *hcl.Block) {
	s, c := d.context.decodeAt(b, concurrencySchema)
	limit := &Concurrency{Limit: 1, OnLimit: LimitQueue}
	if n, ok := s.whole(c.Arg("limit"), 1, math.MaxInt32); ok {
		limit.Limit = int(n)
	}
	if word, ok := s.word(c.Arg("on_limit")); ok {
		limit.OnLimit = OnLimit(word)
	}
	limit.key = s.fitting(c.Arg("key"), cty.Type.IsPrimitiveType)
	d.flow.Concurrency = limit
}

func (d *flowDecoder) decodeOutput(b *hcl.Block) {
	s, c := d.context.decodeAt(b, outputSchema)
	name, at, ok := s.module.label(b)
	if !ok {
		return
	}
	for _, o := range d.flow.Outputs {
		if o.Name == name {
			s.diags.Duplicate("output", name, at, o.Range)
			return
		}
	}
	o := &Output{Name: name, Range: b.DefRange, value: s.inputs(c.Arg("value"), cty.NilVal)}
	if x := o.value.expr; x != nil {
		x.argument = "output " + name // which of them fails in a run
	}
	o.Description, _ = s.text(c.Arg("description"))
	d.flow.Outputs = append(d.flow.Outputs, o)
}
