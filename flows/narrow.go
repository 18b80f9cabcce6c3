package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// DefaultOpened is how many bytes of JSON of one value expressions look into, unless
// a host's settings state otherwise: the cost of an expression grows with them. Parts
// of larger values are found by their path, without decoding the rest.
const DefaultOpened = 256 << 10

// sizeError is why an expression gets no value.
type sizeError struct{ size, bound int }

func (e *sizeError) Error() string {
	return fmt.Sprintf("too large for an expression: it has %d bytes of JSON, and expressions open %d at most; pass it on whole, name a part of it by its path, give it to for_each, or let a task compute this", e.size, e.bound)
}

// storedError is why an expression gets no value of an output that is stored as an artifact.
type storedError struct{ size int }

func (e *storedError) Error() string {
	return fmt.Sprintf("stored as an artifact, which expressions do not open: it has %d bytes of JSON, and %d are the most that are recorded; pass it on whole, read it in a task with ctx.OpenArtifact, or return less from the task", e.size, run.MaxRecorded)
}

// narrowing is what a scope does for values that are too large to be opened.
type narrowing interface {
	narrowed(w ref, x *expression) (cty.Value, bool, error)
}

// narrowed is a large value with nothing in it but what the expression names, when
// all of its references lead to parts by name or number.
func (s *Scope) narrowed(w ref, x *expression) (cty.Value, bool, error) {
	if !w.costly() || !s.large(w) {
		return cty.NilVal, false, nil
	}
	paths, ok := x.paths(w)
	if !ok {
		return cty.NilVal, false, nil // it is refused where it is opened
	}
	if err := storedBeyond(s.recorded(w), paths); err != nil {
		return cty.NilVal, true, fmt.Errorf("%s is %w", w, err)
	}
	defer s.end(s.begin())
	whole := new(narrowedPart)
	left := s.flow.opened
	for _, path := range paths {
		size, err := s.narrow(whole, s.recorded(w), path, left)
		if err != nil {
			return cty.NilVal, true, fmt.Errorf("%s is %w", w, err)
		}
		left -= size
	}
	return whole.build(), true, nil
}

// large reports whether a value is recorded as JSON that is not opened as a whole.
func (s *Scope) large(w ref) bool {
	r := reference{ref: w}
	if !r.recorded() || w.root.bit == rootParam && s.flow.params[w.name].Type != cty.DynamicPseudoType ||
		w.root.bit == rootTrigger && len(s.payloadTypes()) > 0 {
		return false
	}
	recorded := s.recorded(w)
	_, stored := run.StoredSize(recorded)
	return stored || len(recorded) > s.flow.opened
}

// storedBeyond refuses paths that lead into what is stored as an artifact. Those to its
// digest, size and content type do not.
func storedBeyond(recorded json.RawMessage, paths [][]ctyjson.Step) error {
	size, stored := run.StoredSize(recorded)
	beyond := func(path []ctyjson.Step) bool {
		return len(path) == 0 || !slices.Contains([]string{"$artifact", "size", "content_type"}, path[0].Name)
	}
	if stored && slices.ContainsFunc(paths, beyond) {
		return &storedError{size}
	}
	return nil
}

// paths are where the expression's references to a value lead to in it.
func (x *expression) paths(w ref) ([][]ctyjson.Step, bool) {
	var all [][]ctyjson.Step
	for _, t := range x.Variables() {
		name, _, _ := syntax.Step(t, 1)
		if t.RootName() != w.root.name || name != w.name {
			continue
		}
		rest := t[2:]
		if w.root.bit&settledRoots != 0 {
			if attribute, _, _ := syntax.Step(t, 2); attribute != w.attribute {
				continue
			}
			rest = t[3:]
		}
		path, ok := pathInto(rest)
		if !ok || len(path) == 0 {
			return nil, false
		}
		all = append(all, path)
	}
	slices.SortStableFunc(all, func(a, b []ctyjson.Step) int { return len(a) - len(b) })
	return all, len(all) > 0
}

// maxPlace bounds the numbers in paths: what comes before an item is made up.
const maxPlace = 10_000

// pathInto is the part of a traversal that can be followed in JSON.
func pathInto(rest hcl.Traversal) ([]ctyjson.Step, bool) {
	var path []ctyjson.Step
	for _, t := range rest {
		step, ok := stepInto(t)
		if !ok || step.Index > maxPlace {
			break
		}
		path = append(path, step)
	}
	return path, len(path) > 0
}

// narrow decodes what is at a path, or at the last place on the way to it that there
// is, and puts it into the narrowed value.
func (s *Scope) narrow(whole *narrowedPart, src json.RawMessage, path []ctyjson.Step, left int) (int, error) {
	place := whole
	for i, step := range path {
		if place.value != cty.NilVal {
			return 0, nil // a reference to more than this was there before
		}
		if s.budget.Charge(len(src)/256) != nil {
			return 0, ctyjson.ErrTooMuch
		}
		kind := ctyjson.First(src)
		place.list = kind == '['
		part, length, err := ctyjson.Enter(src, step, i, s.budget)
		if errors.Is(err, ctyjson.ErrNoSuchPart) {
			if place.empty() && kind != '{' && kind != '[' {
				place.value, err = ctyjson.Decode(src, s.budget) // a string or a number, which has no parts
				return len(src), err
			}
			place.length = max(place.length, length)
			return 0, nil // hcl reports that it is not there
		}
		if err != nil {
			return 0, err
		}
		src = part
		place = place.enter(step)
	}
	if len(src) > left {
		return 0, &sizeError{len(src), left}
	}
	var err error
	if place.value == cty.NilVal && place.empty() {
		place.value, err = ctyjson.Decode(src, s.budget)
	}
	return len(src), err
}

// narrowedPart is a place in a narrowed value.
type narrowedPart struct {
	value  cty.Value // decoded; NilVal where only parts are
	list   bool
	names  map[string]*narrowedPart
	items  map[int]*narrowedPart
	length int // of a list, as far as it matters
}

func (f *narrowedPart) empty() bool { return len(f.names)+len(f.items) == 0 }

func (f *narrowedPart) enter(s ctyjson.Step) *narrowedPart {
	if f.names == nil {
		f.names, f.items = map[string]*narrowedPart{}, map[int]*narrowedPart{}
	}
	if s.Index < 0 {
		if f.names[s.Name] == nil {
			f.names[s.Name] = new(narrowedPart)
		}
		return f.names[s.Name]
	}
	f.length = max(f.length, s.Index+1)
	if f.items[s.Index] == nil {
		f.items[s.Index] = new(narrowedPart)
	}
	return f.items[s.Index]
}

// build makes a value of it. What is in front of an item that is named is null.
func (f *narrowedPart) build() cty.Value {
	switch {
	case f.value != cty.NilVal:
		return f.value
	case f.list:
		items := make([]cty.Value, f.length)
		for i := range items {
			items[i] = cty.NullVal(cty.DynamicPseudoType)
			if item := f.items[i]; item != nil {
				items[i] = item.build()
			}
		}
		return cty.TupleVal(items)
	}
	attributes := make(map[string]cty.Value, len(f.names))
	for name, part := range f.names {
		attributes[name] = part.build()
	}
	return cty.ObjectVal(attributes)
}

// String names a run value for messages.
func (w ref) String() string {
	name := w.root.name + "." + w.name
	if w.root.bit&settledRoots != 0 {
		name += "." + w.attribute
	}
	return name
}

// members are some members of a large object as they are written, found in one pass.
func (s *Scope) members(src json.RawMessage, names func(string) bool) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	err := ctyjson.Each(src, s.budget, func(name, value []byte) error {
		if names(string(name)) {
			out[string(name)] = value
		}
		return nil
	})
	return out, err
}
