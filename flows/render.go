package flows

import (
	"encoding/json"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
)

// render puts the JSON of a run between what is known. It gives up, for whatever
// reason, where evaluating the expression might not end with these bytes.
func (l *template) render(s *Scope) (json.RawMessage, bool) {
	defer s.end(s.begin())
	out, ok := make([]byte, 0, l.size(s)), true
	for i := range l.segments {
		p := &l.segments[i]
		out = append(out, p.known...)
		switch {
		case p.ref != nil:
			out, ok = s.appendReference(out, p.ref)
		case p.expr != nil:
			out, ok = s.appendExpression(out, p.expr)
		}
		if !ok {
			return nil, false
		}
	}
	return out, true
}

// size is about as much as is going to be filled in.
func (l *template) size(s *Scope) int {
	const short = 24 // most numbers, names and times
	size := l.known
	for i := range l.segments {
		switch p := &l.segments[i]; {
		case p.ref != nil && p.ref.recorded() && len(p.ref.steps) == 0:
			size += len(s.recorded(p.ref.ref))
		case p.ref != nil || p.expr != nil:
			size += short
		}
	}
	return size
}

const (
	// largeJSON is how many bytes of JSON are scanned for each reference into them
	// without a second thought.
	largeJSON = 4 << 10

	// maxScans is how often larger ones are. Converting costs some thirty times as
	// much as scanning, but only once in a run.
	maxScans = 32
)

func (s *Scope) appendReference(out []byte, r *reference) ([]byte, bool) {
	src := s.recorded(r.ref)
	if !r.recorded() || !fits(src, r.typ) {
		v, err := s.value(r.ref)
		if err != nil {
			return nil, false
		}
		return s.appendValue(out, v)
	}
	large := len(src) > s.flow.opened
	if len(r.steps) > 0 && len(src) > largeJSON && r.root.bit != rootEach && !large && !s.scan(r.ref) {
		return nil, false
	}
	if s.budget.Charge(len(src)/256) != nil {
		return nil, false
	}
	out, err := ctyjson.Extract(out, src, r.steps, s.budget)
	return out, err == nil
}

// fits reports whether recorded JSON is of a type as it stands, so that
// converting it to the type changes nothing.
func fits(src json.RawMessage, t cty.Type) bool {
	switch c := src[0]; {
	case t == cty.DynamicPseudoType:
		return true
	case c == 'n':
		return t.IsPrimitiveType()
	case t == cty.String:
		return c == '"'
	case t == cty.Bool:
		return c == 't' || c == 'f'
	case t == cty.Number:
		return c == '-' || c >= '0' && c <= '9'
	}
	return false
}

// scan reports whether scanning large JSON once more is cheaper in the long run
// than converting it.
func (s *Scope) scan(w ref) bool {
	if _, converted := s.kept[w]; converted {
		return false
	}
	if s.scanned == nil {
		s.scanned = map[ref]int{}
	}
	s.scanned[w]++
	return s.scanned[w] <= maxScans
}

func (s *Scope) appendExpression(out []byte, x *expression) ([]byte, bool) {
	v, diags := x.evaluate(s.flow.base, s, s.budget)
	if diags.HasErrors() {
		return nil, false
	}
	return s.appendValue(out, v)
}

func (s *Scope) appendValue(out []byte, v cty.Value) ([]byte, bool) {
	out, err := ctyjson.Append(out, v, s.budget)
	return out, err == nil
}
