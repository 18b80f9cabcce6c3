package flows

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// Blocks gives a digest of each part of each flow of the set, by the names of the flow and
// of the part, so that versions of a flow can be compared. There are the flow's own blocks and arguments ("task
// load", "trigger schedule nightly", "timeout", "group notify task mail") and what it uses
// of its module ("plugin greet", "variable region", "value of region", "local rate",
// "defaults", "file rates.json"). Comments and layout do not count. A flow file in JSON is
// one part of all flows of its module. Values of sensitive variables, which are not
// recorded, are not compared.
func (s *Set) Blocks() map[string]map[string]string {
	all := make(map[string]map[string]string, len(s.Flows))
	sources := map[*run.Definition]*sources{}
	for _, f := range s.Flows {
		if sources[f.Definition] == nil {
			sources[f.Definition] = sourcesOf(f.Definition)
		}
		all[f.Name] = sources[f.Definition].blocks(f)
	}
	return all
}

// sources are the parsed files of a module, which all of its flows share.
type sources struct {
	flows  map[string][]flowBody // bodies, by the flow's name in its file
	module map[string]*piece     // what a flow may use, by name
	common []string              // names in module that are for all flows
	whole  map[string][]byte     // files that are one part
}

// flowBody is a body of a file.
type flowBody struct {
	body   *hclsyntax.Body
	source []byte // of the file
}

// piece is a part that a flow may use or not.
type piece struct {
	node   hclsyntax.Node
	source []byte // of the file
	words  []byte // once a flow has used it
}

func sourcesOf(d *run.Definition) *sources {
	s := &sources{flows: map[string][]flowBody{}, module: map[string]*piece{}, whole: map[string][]byte{}}
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		content := d.Files[name]
		if !isFlowFile(name) || strings.HasSuffix(name, ".json") {
			s.whole["file "+name] = content
			continue
		}
		parsed, _ := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
		if body, ok := parsed.Body.(*hclsyntax.Body); ok { // it always is, and was parsed before
			s.file(body, content)
		}
	}
	return s
}

// file takes a flow file apart.
func (s *sources) file(body *hclsyntax.Body, source []byte) {
	for _, b := range body.Blocks {
		switch {
		case b.Type == "flow" && len(b.Labels) == 1:
			s.flows[b.Labels[0]] = append(s.flows[b.Labels[0]], flowBody{b.Body, source})
		case b.Type == "flow":
		case b.Type == "locals":
			for name, a := range b.Body.Attributes {
				s.module["local "+name] = &piece{node: a, source: source}
			}
		default:
			s.module[title(b)] = &piece{node: b, source: source}
			if len(b.Labels) == 0 {
				s.common = append(s.common, title(b))
			}
		}
	}
}

// blocks are those of one flow.
func (s *sources) blocks(f *Flow) map[string]string {
	p := &parts{sources: s, digests: map[string]string{}, used: map[string]bool{}, taken: map[string]bool{}}
	for name, content := range s.whole {
		p.add(name, content)
	}
	for _, name := range s.common {
		p.refer(name)
	}
	for _, own := range s.flows[strings.TrimPrefix(f.Name, f.Definition.Prefix)] {
		p.body(own.body, own.source, "")
		p.use(own.body)
	}
	p.takeUsed()
	for name, value := range f.Definition.Vars {
		if p.uses("variable " + name) {
			p.add("value of "+name, value)
		}
	}
	return p.digests
}

// parts is a flow that is taken apart.
type parts struct {
	*sources
	digests map[string]string
	used    map[string]bool // names of parts of the module; that of a kind alone, "variable ", for all of them
	next    []string        // of used, those that are still to be taken
	taken   map[string]bool // names in sources.module
}

func (p *parts) uses(name string) bool {
	kind, _, _ := strings.Cut(name, " ")
	return p.used[name] || p.used[kind+" "]
}

func title(b *hclsyntax.Block) string {
	return strings.Join(append([]string{b.Type}, b.Labels...), " ")
}

// body takes a body apart, and those in it that hold tasks. Of a group itself there
// is the order of its members, in which they may run.
func (p *parts) body(body *hclsyntax.Body, source []byte, within string) {
	for name, a := range body.Attributes {
		p.addNode(within+name, a, source)
	}
	for _, b := range body.Blocks {
		switch name := within + title(b); {
		case b.Type == "locals":
			for name, a := range b.Body.Attributes {
				p.addNode(within+"local "+name, a, source)
			}
		case b.Type == "group":
			p.add(name, order(b.Body))
			p.body(b.Body, source, name+" ")
		case hooks[Part(b.Type)] != nil:
			p.add(name, nil)
			p.body(b.Body, source, name+" ")
		default:
			p.addNode(name, b, source)
		}
	}
}

// order lists the members of a group.
func order(group *hclsyntax.Body) []byte {
	var names []byte
	for _, b := range group.Blocks {
		names = append(append(names, title(b)...), '\n')
	}
	return names
}

// namedOtherwise are the roots of references by which parts of a module are not named.
var namedOtherwise = map[string]string{"var": "variable"}

// use notes what a piece of a file refers to.
func (p *parts) use(node hclsyntax.Node) {
	hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if x, ok := n.(*hclsyntax.ScopeTraversalExpr); ok {
			kind := x.Traversal.RootName()
			if other, ok := namedOtherwise[kind]; ok {
				kind = other
			}
			name, _, _ := syntax.Step(x.Traversal, 1) // "" where it is not written out, which is all of them
			p.refer(kind + " " + name)
		}
		return nil
	})
}

func (p *parts) refer(name string) {
	if !p.used[name] {
		p.used[name] = true
		p.next = append(p.next, name)
	}
}

// takeUsed adds the parts of the module that the flow uses, and what those use.
func (p *parts) takeUsed() {
	for len(p.next) > 0 {
		name := p.next[0]
		p.next = p.next[1:]
		if !strings.HasSuffix(name, " ") {
			p.take(name)
			continue
		}
		for one := range p.module {
			if strings.HasPrefix(one, name) {
				p.take(one)
			}
		}
	}
}

// take adds a part of the module, once. Names of other things are passed over.
func (p *parts) take(name string) {
	piece := p.module[name]
	if piece == nil || p.taken[name] {
		return
	}
	p.taken[name] = true
	if piece.words == nil {
		piece.words = plainTokens(piece.node, piece.source)
	}
	p.add(name, piece.words)
	p.use(piece.node)
}

// addNode adds a piece of a file.
func (p *parts) addNode(name string, node hclsyntax.Node, source []byte) {
	p.add(name, plainTokens(node, source))
}

// plainTokens is a piece of a file without the comments and the layout.
func plainTokens(node hclsyntax.Node, source []byte) []byte {
	r := node.Range()
	tokens, _ := hclsyntax.LexConfig(source[r.Start.Byte:r.End.Byte], r.Filename, hcl.InitialPos)
	words := []byte{}
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenComment && t.Type != hclsyntax.TokenNewline {
			words = binary.AppendUvarint(words, uint64(len(t.Bytes)))
			words = append(words, t.Bytes...)
		}
	}
	return words
}

// add adds a part. What has the same name as another one is one part with it.
func (p *parts) add(name string, content []byte) {
	digest := sha256.Sum256(append([]byte(p.digests[name]), content...))
	p.digests[name] = hex.EncodeToString(digest[:16])
}
