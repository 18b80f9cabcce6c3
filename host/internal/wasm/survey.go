package wasm

// smallLeaf is how many units a function that calls nothing and has no check at
// its entry may cost outside its loops. Direct calls of it pay them; indirect
// ones do not.
const smallLeaf = 64

// survey is what must be known of the whole module before any of it is written.
type survey struct {
	functions []facts // that the module defines

	changes bool // there are instructions that Rewritten.Changes tells of
	spends  bool // the function to spend units is needed
	ranges  bool // the function to spend units for a range is needed

	growsTables bool // there is table.grow

	references map[int]bool // functions that code refers to, imports included

	growth int // bytes that checks add to the code, about
}

// facts of a function.
type facts struct {
	inline   uint8 // units that a direct call of it costs besides its own
	entry    bool  // it pays for itself
	indirect bool  // it has indirect calls
	counted  bool  // it counts depth
}

// survey walks the code.
func (m *Module) survey() *survey {
	s := &survey{functions: make([]facts, m.Figures.Functions), references: map[int]bool{}}
	code := m.find(sectionCode)
	if code.id != sectionCode {
		return s
	}
	graph := newCallGraph(s.functions)
	p := newPlan(s.functions)
	m.again(code).eachBody(func(b *body) {
		p.read(b)
		s.note(p, &s.functions[b.index-m.imported.functions])
		graph.add(p.calls)
	})
	graph.markCounted()
	return s
}

// note notes what a function consists of.
func (s *survey) note(p *plan, f *facts) {
	f.indirect = p.indirect
	if own := p.stretches[0].units; p.direct || p.indirect || own > smallLeaf {
		f.entry = true
	} else {
		f.inline = uint8(own)
	}
	s.growth += p.growth()
	s.changes = s.changes || p.changes
	s.ranges = s.ranges || p.ranges
	for _, f := range p.references {
		s.references[f] = true
	}
	s.growsTables = s.growsTables || p.growsTables
	s.spends = s.spends || p.grows || p.many()
}
