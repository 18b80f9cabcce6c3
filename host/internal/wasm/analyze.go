package wasm

// smallLeaf is how many units a function that calls nothing and has no check at
// its entry may cost outside its loops. Direct calls of it pay them; indirect
// ones pay those of the largest one that can be called so.
const smallLeaf = 64

// analysis is what must be known of the whole module before any of it is written.
type analysis struct {
	functions []facts // that the module defines

	changes bool // there are instructions that Rewritten.Changes reports
	spends  bool // the function to spend units is needed
	ranges  bool // the function to spend units for a range is needed
	grows   bool
	fills   bool
	copies  bool

	indirectLeaf int64 // units of the largest function without a check whose address is taken

	growsTables bool // there is table.grow

	references map[int]bool // functions that code refers to, imports included
	inits      map[int]bool // data segments of memory.init
	drops      bool         // there is data.drop

	growth int // bytes that checks add to the code, about
}

// facts of a function.
type facts struct {
	inline   uint8 // units that a direct call of it costs besides its own
	entry    bool  // it pays for itself
	indirect bool  // it has indirect calls
	counted  bool  // it counts depth
	leaves   bool  // it has a check at its end
	returns  int32 // units that may run from the last check in it or in what it calls to its end
}

// analyze reads the code.
func (m *Module) analyze() *analysis {
	a := &analysis{functions: make([]facts, m.Figures.Functions), references: map[int]bool{}, inits: map[int]bool{}}
	code := m.find(sectionCode)
	if code.id != sectionCode {
		return a
	}
	graph := newCallGraph(a.functions)
	p := newPlan(a.functions, 0)
	taken := m.addressesTaken(sectionGlobal, sectionElement)
	m.again(code).eachBody(func(b *body) {
		p.read(b)
		a.note(p, &a.functions[b.index-m.imported.functions])
		graph.add(p.calls)
		for _, f := range p.references {
			if defined := f - m.imported.functions; defined >= 0 {
				taken[defined] = true
			}
		}
	})
	graph.markCounted()
	for f := range a.functions {
		if taken[f] {
			a.indirectLeaf = max(a.indirectLeaf, int64(a.functions[f].inline))
		}
	}
	return a
}

// addressesTaken is which functions some sections other than the code name.
func (m *Module) addressesTaken(sections ...byte) []bool {
	taken := make([]bool, m.Figures.Functions)
	for _, id := range sections {
		s := m.find(id)
		if s.id != id {
			continue
		}
		d := m.again(s)
		d.onFunction = func(_, index int) {
			if index >= m.imported.functions {
				taken[index-m.imported.functions] = true
			}
		}
		d.readContent(id)
	}
	return taken
}

// note notes what a function consists of.
func (a *analysis) note(p *plan, f *facts) {
	f.indirect, f.returns = p.indirect, int32(p.pending)
	if own := p.stretches[0].units; p.direct || p.indirect || max(own, p.pending) > smallLeaf {
		f.entry = true
	} else {
		f.inline = uint8(own)
	}
	a.growth += p.growth()
	a.changes = a.changes || p.changes
	a.ranges = a.ranges || p.ranges
	for _, f := range p.references {
		a.references[f] = true
	}
	for _, segment := range p.inits {
		a.inits[segment] = true
	}
	a.drops = a.drops || p.drops
	a.growsTables = a.growsTables || p.growsTables
	a.spends = a.spends || p.many()
	a.grows = a.grows || p.grows
	a.fills = a.fills || p.fills
	a.copies = a.copies || p.copies
}
