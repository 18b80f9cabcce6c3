package wasm

// What is unrolled, see weaver.unroll. Longer loops gain nothing: their check is
// hidden behind their work.
const (
	unrolledBody   = 64 // bytes of a loop's body at most
	unrolledCopies = 4
	unrolledInAll  = 4 << 10 // bytes that copies add to one function at most
)

// manyLoops is how many loops of one function may have a check in place. If
// there are more, all of them call a function, because the time wazero takes to
// compile a function grows with the square of its blocks.
const manyLoops = 256

// What is not worth a subtraction of its own, and paid by an earlier stretch: up
// to so many units, and more as long as that pays up to so many for others. A Go
// guest pays for three times what it runs. If each stretch paid for itself it
// would take 10 % longer, and if the first one did for all, it would pay for 25
// times as much.
const (
	smallStretch = 8
	paidInAll    = 128
)

// stretch is instructions that are paid for together, where the first one
// stands: no other of them runs but after that. The first stretch of a function
// and of a loop comes with a check; others are subtracted only, as a branch would
// cost more. They keep the units close to what runs where most of a function does
// not, as in Go guests, whose functions are one loop each.
type stretch struct {
	at    int   // where it begins
	units int64 // 0: they are with an earlier one
	extra int64 // those of units that are for later ones

	// Of the first one of a loop:
	loop   bool
	closed bool // it has no parameters
	plain  bool // and no results
	outer  bool // there are loops in it
	size   int  // bytes of its body
}

// small reports whether the loop is worth unrolling.
func (s *stretch) small() bool {
	return s.plain && !s.outer && s.size <= unrolledBody
}

// plan is what is known of a function before it is written. It can be used for
// one after the other.
type plan struct {
	functions []facts
	stretches []stretch // in their order, the function's first
	open      []openBlock
	onLabel   func(at, depth int)
	loops     int
	straight  bool // nothing has branched or called yet
	leads     bool // it always leads to a loop, with the second stretch

	calls    []int // defined functions that are called directly
	direct   bool  // it has direct calls, maybe of imported functions
	indirect bool  // it has indirect calls
	changes  bool  // like the fields of survey
	ranges   bool
	grows    bool // there is memory.grow

	growsTables bool  // like that of survey
	references  []int // functions that it refers to, imports included
}

// openBlock is a block of which the end is still to come.
type openBlock struct {
	stretch int // of the instructions that come next
	before  int // the last one in or before the block that stays
	loop    int // the first stretch of the innermost loop; 0 outside
	reach   int // the outermost block that a branch leads to
}

func newPlan(functions []facts) *plan {
	p := &plan{functions: functions}
	p.onLabel = func(_, depth int) { p.branch(len(p.open) - 1 - depth) }
	return p
}

// many reports whether the function has many loops.
func (p *plan) many() bool { return p.loops > manyLoops }

// growth is how many bytes longer the function becomes, about.
func (p *plan) growth() int {
	const check, guard, payment = 28, 45, 10
	sum := check
	for i := range p.stretches {
		switch s := &p.stretches[i]; {
		case s.loop && !p.many() && s.small():
			sum += check + unrolledCopies*(s.size+5)
		case s.loop:
			sum += guard
		case s.units > 0:
			sum += payment
		}
	}
	return sum
}

// read reads the instructions of a body.
func (p *plan) read(b *body) {
	*p = plan{
		functions: p.functions, onLabel: p.onLabel, straight: true,
		stretches: p.stretches[:0], open: p.open[:0], calls: p.calls[:0], references: p.references[:0],
	}
	b.onFunction, b.onLabel = nil, p.onLabel
	b.open()
	p.open = append(p.open, openBlock{stretch: p.begin(b.pos)})
	for len(b.labels) > 0 && b.err == nil {
		at, op := b.step()
		top := p.top()
		switch op {
		case opBlock:
			p.open = append(p.open, openBlock{top.stretch, top.stretch, top.loop, len(p.open)})
		case opElse:
			p.otherwise(b.pos)
		case opEnd:
			p.leave(at, b.pos)
		case opNop:
		default:
			p.stretches[top.stretch].units++
			p.note(b, at, op)
		}
	}
}

// note notes what an instruction that does something means for the function.
func (p *plan) note(b *body, at int, op byte) {
	switch op {
	case opIf:
		p.straight = false
		before := p.top()
		p.open = append(p.open, openBlock{p.begin(b.pos), before.stretch, before.loop, len(p.open)})
	case opLoop:
		p.enterLoop(b.pos)
		first := &p.stretches[p.top().stretch]
		first.plain = b.module[at+1] == noType
		first.closed = b.module[at+1] >= noType && b.pos == at+2
	case opUnreachable:
		p.straight = false
	case opReturn:
		p.branch(0)
	case opCall:
		p.call(b.function - b.imported.functions)
	case opCallIndirect:
		p.straight, p.indirect = false, true
	case opMemoryGrow:
		p.grows = true
	case opTableSet:
		p.changes = true
	case opRefFunc:
		p.references = append(p.references, b.function)
	case opBulk:
		p.changes = p.changes || isChange(b.number)
		p.ranges = p.ranges || isRange(b.number)
		p.growsTables = p.growsTables || b.number == bulkTableGrow
	}
}

func (p *plan) top() *openBlock { return &p.open[len(p.open)-1] }

// begin begins a stretch.
func (p *plan) begin(at int) int {
	p.stretches = append(p.stretches, stretch{at: at})
	return len(p.stretches) - 1
}

// settle ends the current stretch. An earlier one pays for it, unless that is too
// much.
func (p *plan) settle() {
	top := p.top()
	if top.stretch == top.before {
		return
	}
	s, before := &p.stretches[top.stretch], &p.stretches[top.before]
	if s.units > smallStretch && s.units+before.extra > paidInAll {
		top.before = top.stretch
		return
	}
	before.units += s.units
	before.extra += s.units
	s.units = 0
}

func (p *plan) enterLoop(body int) {
	p.stretches[p.top().loop].outer = true
	s := p.begin(body)
	p.stretches[s].loop = true
	p.open = append(p.open, openBlock{s, s, s, len(p.open)})
	p.leads = p.leads || p.straight && s == 1
	p.loops++
}

// branch notes a branch to one of the open blocks.
func (p *plan) branch(to int) {
	p.straight = false
	p.top().reach = min(p.top().reach, to)
}

// call notes a direct call. Imported functions are below zero.
func (p *plan) call(callee int) {
	p.straight, p.direct = false, true
	if callee >= 0 {
		p.stretches[p.top().stretch].units += int64(p.functions[callee].inline)
		p.calls = append(p.calls, callee)
	}
}

// otherwise begins the second part of an if.
func (p *plan) otherwise(at int) {
	p.settle()
	if outside := len(p.open) - 2; outside >= 0 { // always, unless there is no if
		p.top().before, p.top().stretch = p.open[outside].stretch, p.begin(at)
	}
}

// leave ends the innermost block. If a branch may have led out of it to
// somewhere else, what comes next is another stretch.
func (p *plan) leave(at, after int) {
	p.settle()
	index := len(p.open) - 1
	block := p.open[index]
	p.open = p.open[:index]
	if index == 0 {
		return
	}
	top := p.top()
	if block.loop != top.loop {
		first := &p.stretches[block.loop]
		first.size = at - first.at
		first.units = max(1, first.units)
	}
	if top.reach = min(top.reach, block.reach); block.reach < index {
		p.settle()
		top.stretch = p.begin(after)
	}
}

// isChange reports whether a bulk operation changes a table or a segment.
func isChange(number int) bool {
	switch number {
	case bulkDataDrop, bulkElemDrop, bulkTableInit, bulkTableCopy, bulkTableGrow, bulkTableFill:
		return true
	}
	return false
}

// isRange reports whether a bulk operation takes the longer the more elements it
// is given.
func isRange(number int) bool {
	switch number {
	case bulkMemoryInit, bulkMemoryCopy, bulkMemoryFill, bulkTableInit, bulkTableCopy, bulkTableGrow, bulkTableFill:
		return true
	}
	return false
}
