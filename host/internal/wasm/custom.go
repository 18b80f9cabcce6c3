package wasm

import "bytes"

// WithCustom gives a module that has one custom section of that name, at its
// end, where any may occur (section 5.5.3 of the specification). Those of the name
// that it had are left out; all other bytes are as they were. It fails with an
// *[Error], as [WithoutCustom] does.
func WithCustom(module []byte, name string, content []byte) ([]byte, error) {
	rest, err := WithoutCustom(module, name)
	if err != nil {
		return nil, err
	}
	return AppendCustom(rest, name, content), nil
}

// AppendCustom gives a module with one more custom section at its end. The
// module is not looked at and not changed.
func AppendCustom(module []byte, name string, content []byte) []byte {
	var body writer
	body.name(name)
	body.bytes(content...)
	w := writer{out: bytes.Clone(module)}
	w.bytes(sectionCustom)
	w.uvarint(len(body.out))
	w.bytes(body.out...)
	return w.out
}

// WithoutCustom gives a module without its custom sections of that name, all
// other bytes as they were. It reads where sections begin and end, and nothing of
// the content of the others; it fails with an *[Error] where that is ambiguous.
func WithoutCustom(module []byte, name string) ([]byte, error) {
	if fault := checkHeader(module); fault != nil {
		return nil, fault
	}
	rest := bytes.Clone(module[:headerSize])
	r := reader{module: module, pos: headerSize, end: len(module)}
	for r.left() > 0 {
		start := r.pos
		found, custom := r.frame()
		if r.err != nil {
			return nil, r.err
		}
		if !custom || found != name {
			rest = append(rest, module[start:r.pos]...)
		}
	}
	return rest, nil
}

// Plain gives the module without custom sections, which decoders of others may trust.
func (m *Module) Plain() []byte {
	plain := make([]byte, headerSize, len(m.binary))
	copy(plain, m.binary)
	for _, s := range m.sections {
		plain = append(plain, m.binary[s.start:s.end]...)
	}
	return plain
}

// frame passes over a section, and gives the name of a custom one.
func (r *reader) frame() (name string, custom bool) {
	id := r.byte()
	r.section = sectionName(id)
	size := r.u32()
	body := r.pos
	r.skip(size)
	if r.err != nil || id != sectionCustom {
		return "", false
	}
	inside := reader{module: r.module, pos: body, end: r.pos, section: r.section}
	name = string(inside.name())
	r.err = inside.err
	return name, true
}
