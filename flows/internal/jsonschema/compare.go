package jsonschema

import "slices"

// Mismatch is a part of a value that cannot be what is wanted there.
type Mismatch struct {
	Below     string // its path
	Want, Got *Shape
	Missing   string   // an attribute that is wanted and never there
	Allowed   []string // the strings that are allowed

	seen map[[2]*Shape]bool // types may be recursive
}

// FindMismatch looks for a part of a value that cannot be what is wanted there, nil when
// there is none. That something may be null, absent or empty does not make it fit: a
// value that is right only while it is nothing is wrong.
func FindMismatch(want, got *Shape) *Mismatch {
	m := &Mismatch{seen: map[[2]*Shape]bool{}}
	if !m.misfit(want, got, "") {
		return nil
	}
	return m
}

func (m *Mismatch) misfit(want, got *Shape, below string) bool {
	pair := [2]*Shape{want, got}
	if m.seen[pair] || want.Open() || got.Open() || want.Present() == 0 || got.Present() == 0 {
		return false
	}
	m.seen[pair] = true
	switch both := want.Present() & got.Present(); {
	case both == 0, both == Number && want.Integer && got.Fraction:
	case both == String && want.Enum != nil && got.Enum != nil:
		if slices.ContainsFunc(got.Enum, func(w string) bool { return slices.Contains(want.Enum, w) }) {
			return false
		}
		m.Allowed = want.Enum
	case both == List:
		return m.misfit(want.Item(), got.Item(), below+"[*]")
	case both == Object:
		return m.object(want, got, below)
	default:
		return false
	}
	m.Below, m.Want, m.Got = below, want, got
	return true
}

func (m *Mismatch) object(want, got *Shape, below string) bool {
	for _, name := range want.Required {
		if got.Closed && !got.gives(want, name) {
			m.Below, m.Want, m.Got, m.Missing = below, want, got, name
			return true
		}
	}
	for _, name := range sortedKeys(got.Fields) {
		if field := want.Field(name); field != nil && m.misfit(field, got.Fields[name], below+"."+name) {
			return true
		}
	}
	return want.Rest != nil && got.Rest != nil && m.misfit(want.Rest, got.Rest, below+"[*]")
}

// gives reports whether a value has a field of another shape.
func (s *Shape) gives(want *Shape, name string) bool {
	if s.Fields[name] != nil || !want.AnyCase {
		return s.Fields[name] != nil
	}
	for given := range s.Fields {
		if want.FieldName(given) == name {
			return true
		}
	}
	return false
}

// Loosen describes what may become of a value where plain ones may be converted to each
// other.
func Loosen(s *Shape) *Shape { return loosened(s, map[*Shape]*Shape{}) }

func loosened(s *Shape, seen map[*Shape]*Shape) *Shape {
	if s == nil || seen[s] != nil {
		return seen[s]
	}
	out := new(Shape)
	seen[s] = out
	*out = *s
	if s.Kinds&PlainKinds != 0 {
		out.Kinds |= PlainKinds
		out.Enum, out.Declared, out.Integer, out.Fraction = nil, false, false, false
	}
	out.Rest, out.items = loosened(s.Rest, seen), loosened(s.items, seen)
	if s.Fields != nil {
		out.Fields = make(map[string]*Shape, len(s.Fields))
		for name, field := range s.Fields {
			out.Fields[name] = loosened(field, seen)
		}
	}
	return out
}

const PlainKinds = Bool | Number | String
