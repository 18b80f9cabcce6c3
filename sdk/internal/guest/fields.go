package guest

import (
	"reflect"
	"strings"
	"unicode"
)

// field is one of a struct as encoding/json sees it.
type field struct {
	name     string
	typ      reflect.Type
	optional bool // left out when it is empty, or with a nil pointer around it
	quoted   bool // the option string
	tagged   bool
	depth    int
}

// embedded is a struct whose fields appear among those of the one around it.
type embedded struct {
	typ      reflect.Type
	optional bool // reached through a pointer
}

// fieldsOf lists the fields that encoding/json knows of a struct. Of fields with
// one name, it takes the least deeply embedded, of these the one with a tag, and
// none where this does not decide.
func fieldsOf(t reflect.Type) []field {
	var all []field
	seen := map[reflect.Type]bool{}
	for depth, level := 0, []embedded{{typ: t}}; len(level) > 0; depth++ {
		var next []embedded
		for _, e := range level {
			// Twice on one level counts twice; a level below, it is hidden.
			own, inner := ownFields(e, depth)
			all = append(all, own...)
			next = append(next, inner...)
		}
		for _, e := range level {
			seen[e.typ] = true
		}
		level = level[:0:0]
		for _, e := range next {
			if !seen[e.typ] {
				level = append(level, e)
			}
		}
	}
	var out []field
	for _, f := range all {
		if dominant(all, f) {
			out = append(out, f)
		}
	}
	return out
}

func dominant(all []field, f field) bool {
	same := 0
	for _, other := range all {
		switch {
		case other.name != f.name:
		case other.depth < f.depth, other.depth == f.depth && other.tagged && !f.tagged:
			return false
		case other.depth == f.depth && other.tagged == f.tagged:
			same++
		}
	}
	return same == 1
}

// ownFields lists the fields of one struct, and the structs embedded in it.
func ownFields(e embedded, depth int) (own []field, inner []embedded) {
	for i := range e.typ.NumField() {
		sf := e.typ.Field(i)
		typ := sf.Type
		if sf.Anonymous && typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		tag := sf.Tag.Get("json")
		if !sf.IsExported() && (!sf.Anonymous || typ.Kind() != reflect.Struct) || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !validTag(name) {
			name = ""
		}
		if name == "" && sf.Anonymous && typ.Kind() == reflect.Struct {
			inner = append(inner, embedded{typ, e.optional || sf.Type.Kind() == reflect.Pointer})
			continue
		}
		f := field{name: name, typ: sf.Type, tagged: name != "", depth: depth, optional: e.optional}
		if name == "" {
			f.name = sf.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			f.optional = f.optional || option == "omitempty" || option == "omitzero"
			f.quoted = f.quoted || option == "string" && canQuote(sf.Type)
		}
		own = append(own, f)
	}
	return own, inner
}

func canQuote(t reflect.Type) bool {
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); k {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	default:
		return k >= reflect.Int && k <= reflect.Uintptr
	}
}

// validTag reports whether encoding/json takes a name from a tag.
func validTag(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
