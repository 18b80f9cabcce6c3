package budget

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// cty finds the type that the elements of a list have in common by comparing each
// with each, also where all are of one type. This file converts what data holds, in
// time that grows with its size, and leaves the rest to cty, which is charged for it.

// Convert is [convert.Convert], charged to the budget. What is too much for it
// gives an error.
func (m *Budget) Convert(v cty.Value, want cty.Type) (cty.Value, error) {
	m.charge(m.weigh(v).deep)
	if m.Spent() {
		return cty.NilVal, m.Err()
	}
	if out, ok := m.linear(v, want); ok || m.Spent() {
		return out, m.Err()
	}
	m.charge(m.pairs(v))
	if m.Spent() {
		return cty.NilVal, m.Err()
	}
	return convert.Convert(v, want)
}

// linear converts in linear time. It gives up, for whatever reason, where cty might
// convert to something else, or reports what is wrong.
func (m *Budget) linear(v cty.Value, want cty.Type) (cty.Value, bool) {
	switch {
	case m.Spent() || v.IsMarked() || !v.IsKnown():
		return v, false
	case want == cty.DynamicPseudoType:
		return v, true
	case v.IsNull():
		plain := want.WithoutOptionalAttributesDeep()
		fits := v.Type() == cty.DynamicPseudoType || v.Type().Equals(plain)
		return cty.NullVal(plain), fits && !want.HasDynamicTypes()
	case want.IsPrimitiveType():
		if want == v.Type() {
			return v, true
		}
		return m.linearPrimitive(v, want)
	case want.IsListType(), want.IsSetType():
		return m.linearList(v, want)
	case want.IsMapType():
		return m.linearMap(v, want.ElementType())
	case want.IsObjectType() && v.Type().IsObjectType():
		return m.linearObject(v, want)
	}
	return v, v.Type().Equals(want)
}

func (m *Budget) linearPrimitive(v cty.Value, want cty.Type) (cty.Value, bool) {
	switch {
	case want == cty.Number:
		v = m.ReadNumber(v)
	case want == cty.String && v.Type() == cty.Number:
		v = writtenOut(v, nil, m)
	default:
		converted, err := convert.Convert(v, want)
		return converted, err == nil
	}
	return v, v.Type() == want && !m.Spent()
}

func (m *Budget) linearList(v cty.Value, want cty.Type) (cty.Value, bool) {
	t, element := v.Type(), want.ElementType()
	if !t.IsTupleType() && !t.IsListType() && !t.IsSetType() || t.IsSetType() && !v.IsWhollyKnown() {
		return v, false
	}
	if v.LengthInt() == 0 {
		if !t.IsTupleType() && !t.ElementType().Equals(element) {
			return v, false // cty decides whether one type could become the other
		}
		element = element.WithoutOptionalAttributesDeep()
		if want.IsSetType() {
			return cty.SetValEmpty(element), true
		}
		return cty.ListValEmpty(element), true
	}
	items := v.AsValueSlice()
	if element == cty.DynamicPseudoType {
		var ok bool
		if element, ok = common(elementTypes(items)); !ok {
			return v, false
		}
	}
	for i := range items {
		var ok bool
		if items[i], ok = m.linear(items[i], element); !ok || !items[i].Type().Equals(items[0].Type()) {
			return v, false
		}
	}
	if !want.IsSetType() {
		return cty.ListVal(items), true
	}
	m.charge(m.collisions(items))
	if m.Spent() {
		return v, false
	}
	return cty.SetVal(items), true
}

func (m *Budget) linearMap(v cty.Value, element cty.Type) (cty.Value, bool) {
	if t := v.Type(); !t.IsObjectType() && !t.IsMapType() {
		return v, false
	}
	values := v.AsValueMap()
	if len(values) == 0 {
		return cty.MapValEmpty(element.WithoutOptionalAttributesDeep()), v.Type().IsObjectType()
	}
	if element == cty.DynamicPseudoType {
		var types []cty.Type
		for _, value := range values {
			types = append(types, value.Type())
		}
		var ok bool
		if element, ok = common(types); !ok {
			return v, false
		}
	}
	var first cty.Type
	for name, value := range values {
		converted, ok := m.linear(value, element)
		if first == cty.NilType {
			first = converted.Type()
		}
		if !ok || !converted.Type().Equals(first) {
			return v, false
		}
		values[name] = converted
	}
	return cty.MapVal(values), true
}

func (m *Budget) linearObject(v cty.Value, want cty.Type) (cty.Value, bool) {
	out := make(map[string]cty.Value, len(want.AttributeTypes()))
	for name, t := range want.AttributeTypes() {
		if !v.Type().HasAttribute(name) {
			if !want.AttributeOptional(name) || t.HasDynamicTypes() {
				return v, false
			}
			out[name] = cty.NullVal(t.WithoutOptionalAttributesDeep())
			continue
		}
		var ok bool
		if out[name], ok = m.linear(v.GetAttr(name), t); !ok {
			return v, false
		}
	}
	return cty.ObjectVal(out), true
}

func elementTypes(values []cty.Value) []cty.Type {
	types := make([]cty.Type, len(values))
	for i, v := range values {
		types[i] = v.Type()
	}
	return types
}

// common is the type to which cty brings values of the types, where that is found
// by looking at each type once.
func common(types []cty.Type) (cty.Type, bool) {
	types = distinctTypes(types)
	if len(types) == 1 {
		return types[0], types[0] != cty.DynamicPseudoType
	}
	var primitive, objects, tuples int
	for _, t := range types {
		switch {
		case t.IsPrimitiveType():
			primitive++
		case t.IsObjectType():
			objects++
		case t.IsTupleType():
			tuples++
		}
	}
	switch len(types) {
	case primitive:
		return commonPrimitive(types)
	case objects:
		return commonObject(types)
	case tuples:
		return commonTuple(types)
	}
	return cty.NilType, false
}

// commonPrimitive is that of several: a string is what all are converted to.
func commonPrimitive(types []cty.Type) (cty.Type, bool) {
	for _, t := range types {
		if t == cty.String {
			return t, true
		}
	}
	return cty.NilType, false
}

// commonObject keeps the names if they are the same in all, otherwise it is a map.
func commonObject(types []cty.Type) (cty.Type, bool) {
	across, same := map[string][]cty.Type{}, true
	var all []cty.Type
	for _, t := range types {
		attributes := t.AttributeTypes()
		same = same && len(attributes) == len(types[0].AttributeTypes())
		for name, of := range attributes {
			across[name], all = append(across[name], of), append(all, of)
		}
	}
	if !same || len(across) != len(types[0].AttributeTypes()) {
		element, ok := common(all)
		return cty.Map(element), ok && len(all) > 0
	}
	out := make(map[string]cty.Type, len(across))
	for name, of := range across {
		var ok bool
		if out[name], ok = common(of); !ok {
			return cty.NilType, false
		}
	}
	return cty.Object(out), true
}

// commonTuple keeps the length if it is the same in all, otherwise it is a list.
func commonTuple(types []cty.Type) (cty.Type, bool) {
	var all []cty.Type
	same := true
	for _, t := range types {
		all = append(all, t.TupleElementTypes()...)
		same = same && t.Length() == types[0].Length()
	}
	if !same {
		element, ok := common(all)
		return cty.List(element), ok
	}
	width := types[0].Length()
	out, across := make([]cty.Type, width), make([]cty.Type, len(types))
	for i := range out {
		for j := range types {
			across[j] = all[j*width+i]
		}
		var ok bool
		if out[i], ok = common(across); !ok {
			return cty.NilType, false
		}
	}
	return cty.Tuple(out), true
}

// distinctTypes leaves out types that were there before.
func distinctTypes(types []cty.Type) []cty.Type {
	if len(types) < 2 {
		return types
	}
	var out []cty.Type
	seen := map[uint64]bool{}
	for _, t := range types {
		if h := hashOfType(t); !seen[h] {
			seen[h] = true
			out = append(out, t)
		}
	}
	return out
}

var typeSeed = maphash.MakeSeed()

// hashOfType identifies a type. Its seed differs between processes, so that nobody can
// construct two types of one hash; at 64 bits none meet by chance.
func hashOfType(t cty.Type) uint64 {
	var h maphash.Hash
	h.SetSeed(typeSeed)
	writeType(&h, t)
	return h.Sum64()
}

func writeType(h *maphash.Hash, t cty.Type) {
	switch {
	case t.IsObjectType():
		h.WriteByte('{')
		attributes := t.AttributeTypes()
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			h.WriteString(name)
			h.WriteByte(0)
			writeType(h, attributes[name])
		}
		h.WriteByte('}')
	case t.IsTupleType():
		h.WriteByte('[')
		for _, of := range t.TupleElementTypes() {
			writeType(h, of)
		}
		h.WriteByte(']')
	case t.IsCollectionType():
		h.WriteString(map[bool]string{true: "l", false: "c"}[t.IsListType()])
		if t.IsMapType() {
			h.WriteByte('m')
		}
		writeType(h, t.ElementType())
	default:
		h.WriteString(t.FriendlyName())
	}
}
