package wasm

// maxNames is the bytes of a name section that is kept.
const maxNames = 4 << 20

// Names are the names of functions in a module's name section. Nothing in it has
// been checked; the zero value has no names.
type Names struct{ section []byte }

// Function finds the name of a function by its index, "" where there is none. It
// reads the section each time: names are asked for when a guest has broken.
func (n Names) Function(index int) string {
	const functions = 1 // the subsection, section 7.4.1 of the specification's appendix
	r := reader{module: n.section, end: len(n.section)}
	for r.left() > 0 {
		id, size := r.byte(), r.u32()
		if id == functions {
			return r.findName(index)
		}
		r.skip(size)
	}
	return ""
}

// findName reads a map from indices to names up to the one that is looked for.
func (r *reader) findName(index int) string {
	for range r.count("names", 2, maxNames, "") {
		at, name := r.u32(), r.name()
		if r.err != nil {
			return ""
		}
		if at == index {
			return string(name)
		}
	}
	return ""
}
