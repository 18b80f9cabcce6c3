package wasm

// What is unrolled, see instrumenter.unroll. Longer loops gain nothing: their check is
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

// Limits of what an earlier stretch pays for instead of an own subtraction: up
// to so many units, and more as long as that pays up to so many for others.
const (
	smallStretch = 16
	paidInAll    = 256
)

// tinyStretch is units that may be paid before a call or a loop though they come
// after it. All calls that are nested may have so many at a time.
const tinyStretch = 4

// maxPending is how many units may run without a check on the way through one
// function, and how many while functions return to each other.
const maxPending = 4096

// stretch is instructions that are paid for together, where the first one
// is: no other of them runs but after that, and after no check or call in
// between. The first stretch of a function and of a loop comes with a check, and
// so does one that begins because too much would run without; others are
// subtracted only, as a branch would cost more. They keep the units close to what
// runs where most of a function does not, as in Go guests, whose functions are
// one loop each.
type stretch struct {
	units   int64 // 0: they are with an earlier one
	at      int32 // where it begins
	extra   int32 // those of units that are for later ones
	before  int32 // of one that is barred, the stretch that pays for it if it is tiny
	checked bool  // it begins with a check
	barred  bool  // it comes after a call or a check: only a tiny one is paid earlier
	folded  bool  // it pays for a tiny one

	// Of the first one of a loop:
	loop   bool
	closed bool  // it has no parameters
	plain  bool  // and no results
	outer  bool  // there are loops in it
	size   int32 // bytes of its body
	cost   int32 // units of the longest way through it
}

// small reports whether the loop is worth unrolling.
func (s *stretch) small() bool {
	return s.plain && !s.outer && int(s.size) <= unrolledBody && s.cost <= maxPending/8
}

// plan is what is known of a function before it is written. It can be used for
// one after the other.
type plan struct {
	functions    []facts
	indirectLeaf int64     // units of the largest function without a check that can be called indirectly
	stretches    []stretch // in their order, the function's first
	open         []openBlock
	onLabel      func(at, depth int)
	loops        int
	straight     bool // nothing has branched or called yet
	leads        bool // it always leads to a loop, with the second stretch
	barriers     int  // loops, checks and calls of functions that have checks, so far

	late bool // the next instruction comes after a loop, a check or such a call

	// pending is the units that may have run since the last check, on the longest
	// way to where the plan is; at the function's end it is what may still run in
	// it. Calls do not end it, although what is called may have checks.
	pending int64

	calls    []int // defined functions that are called directly
	direct   bool  // it has direct calls, maybe of imported functions
	indirect bool  // it has indirect calls
	changes  bool  // like the fields of analysis
	ranges   bool
	grows    bool // there is memory.grow
	fills    bool // there is memory.fill
	copies   bool // there is memory.copy

	growsTables bool  // like that of analysis
	references  []int // functions that it refers to, imports included
	inits       []int // data segments of its memory.init
	drops       bool  // there is data.drop
}

// openBlock is a block of which the end is still to come.
type openBlock struct {
	stretch int // of the instructions that come next
	before  int // the last one in or before the block that stays
	loop    int // the first stretch of the innermost loop; 0 outside
	reach   int // the outermost block that a branch leads to

	barriers int   // when it began
	entry    int64 // units pending when it began, where it has another part
	arrive   int64 // at most, of the branches to its end
}

func newPlan(functions []facts, indirectLeaf int64) *plan {
	p := &plan{functions: functions, indirectLeaf: indirectLeaf}
	p.onLabel = func(_, depth int) { p.branch(len(p.open) - 1 - depth) }
	return p
}

// many reports whether the function has many loops.
func (p *plan) many() bool { return p.loops > manyLoops }

// growth is how many bytes longer the function becomes, about.
func (p *plan) growth() int {
	const check, guard, payment = 28, 45, 10
	sum := 2 * check
	for i := range p.stretches {
		switch s := &p.stretches[i]; {
		case s.loop && !p.many() && s.small():
			sum += check + unrolledCopies*(int(s.size)+5)
		case s.loop:
			sum += guard
		case s.checked:
			sum += check
		case s.units > 0:
			sum += payment
		}
	}
	return sum
}

// read reads the instructions of a body.
func (p *plan) read(b *body) {
	*p = plan{
		functions: p.functions, indirectLeaf: p.indirectLeaf, onLabel: p.onLabel, straight: true,
		stretches: p.stretches[:0], open: p.open[:0], calls: p.calls[:0], references: p.references[:0], inits: p.inits[:0],
	}
	b.onFunction, b.onLabel = nil, p.onLabel
	b.open()
	p.open = append(p.open, openBlock{stretch: p.begin(b.pos)})
	for len(b.labels) > 0 && b.err == nil {
		at, op := b.step()
		switch op {
		case opBlock:
			p.catchUp(at)
			p.enter(p.top().stretch)
		case opElse:
			p.otherwise(b.pos)
		case opEnd:
			p.leave(at, b.pos)
		case opNop:
		case opLoop:
			p.note(b, at, op)
		default:
			p.pay(b, at, op)
			p.note(b, at, op)
		}
	}
	p.fold()
}

// pay adds what an instruction costs to the current stretch.
func (p *plan) pay(b *body, at int, op byte) {
	units := b.units(op)
	longest := units
	if callee := b.function - b.imported.functions; op == opCall && callee >= 0 {
		units += int64(p.functions[callee].inline)
		longest += smallLeaf // whichever it is: it may not be known yet
	} else if op == opCallIndirect {
		units += p.indirectLeaf
		longest += smallLeaf
	}
	if p.pending+longest > maxPending {
		p.bar()
		p.stretches[p.catchUp(at)].checked = true
		p.pending = 0
	}
	p.catchUp(at)
	p.pending += longest
	p.stretches[p.top().stretch].units += units
}

// enter opens a block, whose instructions belong to a stretch at first.
func (p *plan) enter(stretch int) {
	top := p.top()
	p.open = append(p.open, openBlock{
		stretch: stretch, before: top.stretch, loop: top.loop, reach: len(p.open), barriers: p.barriers,
	})
}

// bar notes that no earlier stretch may pay for what comes next, unless it is tiny.
func (p *plan) bar() {
	p.barriers++
	p.late = true
}

// catchUp begins the stretch that comes after a barrier, if there was one, and
// gives the current one.
func (p *plan) catchUp(at int) int {
	if !p.late {
		return p.top().stretch
	}
	p.late = false
	p.settle()
	s, top := p.begin(at), p.top()
	p.stretches[s].barred, p.stretches[s].before = true, int32(top.before)
	top.before, top.stretch = s, s
	return s
}

// fold lets earlier stretches pay for tiny ones.
func (p *plan) fold() {
	for i := range p.stretches {
		s := &p.stretches[i]
		if !s.barred || s.checked || s.units > tinyStretch {
			continue
		}
		if before := &p.stretches[s.before]; before.units > 0 && !before.folded {
			before.units += s.units
			before.folded = true
			s.units = 0
		}
	}
}

// note notes what an instruction that does something means for the function.
func (p *plan) note(b *body, at int, op byte) {
	switch op {
	case opIf:
		p.straight = false
		p.enter(p.begin(b.pos))
		p.top().entry, p.top().arrive = p.pending, p.pending
	case opBr, opBrTable, opUnreachable:
		p.straight, p.pending = false, 0
	case opBrIf:
		p.settle()
		p.top().stretch = p.begin(b.pos)
	case opLoop:
		p.enterLoop(b.pos)
		first := &p.stretches[p.top().stretch]
		first.plain = b.module[at+1] == noType
		first.closed = b.module[at+1] >= noType && b.pos == at+2
	case opReturn:
		p.branch(0)
		p.pending = 0
	case opCall:
		p.call(b.function - b.imported.functions)
	case opCallIndirect:
		p.straight, p.indirect = false, true
		p.bar()
	case opMemoryGrow:
		p.grows = true
	case opTableSet:
		p.changes = true
	case opRefFunc:
		p.references = append(p.references, b.function)
	case opBulk:
		p.changes = p.changes || isChange(b.number)
		p.ranges = p.ranges || isRange(b.number)
		p.fills = p.fills || b.number == bulkMemoryFill
		p.copies = p.copies || b.number == bulkMemoryCopy
		p.growsTables = p.growsTables || b.number == bulkTableGrow
		p.drops = p.drops || b.number == bulkDataDrop
		if b.number == bulkMemoryInit {
			p.inits = append(p.inits, b.segment)
		}
	}
}

func (p *plan) top() *openBlock { return &p.open[len(p.open)-1] }

// begin begins a stretch.
func (p *plan) begin(at int) int {
	p.stretches = append(p.stretches, stretch{at: int32(at)})
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
	if s.checked || s.units > smallStretch && s.units+int64(before.extra) > paidInAll {
		top.before = top.stretch
		return
	}
	before.units += s.units
	before.extra += int32(s.units)
	s.units = 0
}

func (p *plan) enterLoop(body int) {
	p.stretches[p.top().loop].outer = true
	s := p.begin(body)
	p.stretches[s].loop = true
	p.enter(s)
	p.top().before, p.top().loop = s, s
	p.barriers++
	p.late, p.pending = false, 0
	p.leads = p.leads || p.straight && s == 1
	p.loops++
}

// branch notes a branch to one of the open blocks.
func (p *plan) branch(to int) {
	p.straight = false
	p.top().reach = min(p.top().reach, to)
	p.open[to].arrive = max(p.open[to].arrive, p.pending)
}

// call notes a direct call. Imported functions are below zero.
func (p *plan) call(callee int) {
	p.straight, p.direct = false, true
	if callee < 0 || p.functions[callee].entry {
		p.bar()
	}
	if callee >= 0 {
		p.calls = append(p.calls, callee)
	}
}

// otherwise begins the second part of an if.
func (p *plan) otherwise(at int) {
	p.settle()
	if outside := len(p.open) - 2; outside >= 0 { // always, unless there is no if
		top := p.top()
		p.late = false
		top.before, top.stretch = p.open[outside].stretch, p.begin(at)
		top.arrive, p.pending = max(top.arrive, p.pending), top.entry
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
		p.pending = max(p.pending, block.arrive)
		return
	}
	top := p.top()
	if block.loop != top.loop {
		first := &p.stretches[block.loop]
		first.size, first.cost = int32(at)-first.at, int32(p.pending)
		first.units = max(1, first.units)
		if first.small() {
			p.pending *= unrolledCopies
		}
	} else {
		p.pending = max(p.pending, block.arrive)
	}
	top.reach = min(top.reach, block.reach)
	if p.barriers != block.barriers {
		p.bar()
	} else if block.reach < index {
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
// is given, of which there cannot be so many that it has to go in pieces.
func isRange(number int) bool {
	switch number {
	case bulkMemoryInit, bulkTableInit, bulkTableCopy, bulkTableGrow, bulkTableFill:
		return true
	}
	return false
}
