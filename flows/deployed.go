package flows

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/run/access"
)

// secret is a secret block.
type secret struct {
	access.Secret
	at    hcl.Range // of the block's header
	block *hcl.Block
}

// reach is the connections and secrets of one directory.
type reach struct {
	prefix      string
	connections map[string]*Connection
	secrets     map[string]*secret
}

func newReach(prefix string) *reach {
	return &reach{prefix: prefix, connections: map[string]*Connection{}, secrets: map[string]*secret{}}
}

// declareReach collects the names of connections and secrets.
func (m *module) declareReach(blocks map[string][]*hcl.Block) {
	for _, b := range blocks["connection"] {
		name, at, ok := m.label(b)
		if first := m.reach.connections[name]; ok && first != nil {
			m.diags.Duplicate("connection", name, at, first.Range)
		} else if ok && m.free("connection", name, at) {
			m.reach.connections[name] = &Connection{Connection: access.Connection{Name: name, Operator: m.settings}, Prefix: m.src.prefix, Range: b.DefRange, block: b}
		}
	}
	for _, b := range blocks["secret"] {
		name, at, ok := m.label(b)
		if first := m.reach.secrets[name]; ok && first != nil {
			m.diags.Duplicate("secret", name, at, first.at)
		} else if ok && m.free("secret", name, at) {
			m.reach.secrets[name] = &secret{Secret: access.Secret{Name: name, Operator: m.settings}, at: b.DefRange, block: b}
		}
	}
}

// free reports a name that the settings of the host declare, too: a grant would not say which
// of the two it is about.
func (m *module) free(kind, name string, at hcl.Range) bool {
	first, taken := m.options.Operator.place(kind, name)
	if !taken || m.restored != nil {
		return true
	}
	m.diags.Add(RuleDuplicate, at, "Duplicate "+kind, "The %s %q is declared already, in the settings of the host, at %s. Rename this one, or take it out and use that one.", kind, name, diag.Place(first))
	return false
}

// decodeReach reads the connections and secrets of the module.
func (m *module) decodeReach() {
	folder := ""
	if len(m.reach.connections)+len(m.reach.secrets) > 0 && m.restored == nil {
		folder = m.home()
	}
	for _, name := range keys(m.reach.secrets) {
		m.reach.secrets[name].Folder = folder
		m.exprContext(nil).secret(m.reach.secrets[name])
	}
	for _, name := range keys(m.reach.connections) {
		x := m.reach.connections[name]
		x.Folder = folder
		s, c := m.exprContext(nil).decodeAt(x.block, reachspec.Connection)
		d := reachDecoder{s, c}
		d.connection(&x.Connection)
	}
	m.set.reach = append(m.set.reach, m.reach)
}

// secret reads a secret block: where the secret is, of which nothing is looked at.
func (s *exprContext) secret(x *secret) {
	s, c := s.decodeAt(x.block, reachspec.Secret)
	d := reachDecoder{s, c}
	x.Env, x.File = d.checked("env", reachspec.Variable), d.checked("file", reachspec.File)
	x.Age, x.Vault = d.checked("age", reachspec.File), d.checked("vault", reachspec.VaultPath)
	x.Key, _ = s.text(c.Arg("key"))
	source := d.oneOf(reachspec.Sources())
	if source == "" {
		return
	}
	switch key := c.Arg("key"); {
	case key == nil && reachspec.Keyed(source):
		s.diags.Add(RuleMissing, c.At, "Missing argument", "A secret of %s needs the argument \"key\": what is there is an object, and key is a name in it.", source)
	case key != nil && !reachspec.Keyed(source):
		s.diags.Add(RuleConflict, key.NameRange, "Arguments exclude each other", "\"key\" belongs to age and vault, where several secrets are in one place: the whole content of %s is the secret. Leave it out.", source)
	}
}

// Connections returns the connections of all directories, by prefix and name. Those of the
// settings of the host are not among them.
func (s *Set) Connections() []*Connection {
	var all []*Connection
	for _, r := range s.reach {
		for _, name := range keys(r.connections) {
			all = append(all, r.connections[name])
		}
	}
	return all
}

// Declared is a connection or a secret with the place of its block.
type Declared[T any] struct {
	Block    *T
	Prefix   string    // of the names of the flows that see it
	Operator bool      // it is of the settings of the host, and all flows see it
	Range    hcl.Range // of the block's header
}

// DeclaredConnections returns the connections of all directories, by prefix and name, and then
// those of the settings of the host.
func (s *Set) DeclaredConnections() []Declared[access.Connection] {
	var all []Declared[access.Connection]
	for _, c := range s.Connections() {
		all = append(all, Declared[access.Connection]{Block: &c.Connection, Prefix: c.Prefix, Range: c.Range})
	}
	if s.operator != nil {
		for _, c := range s.operator.Connections {
			at, _ := s.operator.place("connection", c.Name)
			all = append(all, Declared[access.Connection]{Block: c, Operator: true, Range: at})
		}
	}
	return all
}

// DeclaredSecrets returns the secrets in the same order.
func (s *Set) DeclaredSecrets() []Declared[access.Secret] {
	var all []Declared[access.Secret]
	for _, r := range s.reach {
		for _, name := range keys(r.secrets) {
			x := r.secrets[name]
			all = append(all, Declared[access.Secret]{Block: &x.Secret, Prefix: r.prefix, Range: x.at})
		}
	}
	if s.operator != nil {
		for _, x := range s.operator.Secrets {
			at, _ := s.operator.place("secret", x.Name)
			all = append(all, Declared[access.Secret]{Block: x, Operator: true, Range: at})
		}
	}
	return all
}

// Connection implements [access.Deployed]: a connection of the flow's directory or of the
// settings of the host.
func (s *Set) Connection(flow, name string) *access.Connection {
	if x := s.operator.connection(name); x != nil {
		return x
	}
	if r := s.reachFrom(flow); r != nil && r.connections[name] != nil {
		return &r.connections[name].Connection
	}
	return nil
}

// Secret implements [access.Deployed]: a secret of the flow's directory or of the settings of
// the host.
func (s *Set) Secret(flow, name string) *access.Secret {
	if x := s.operator.secret(name); x != nil {
		return x
	}
	if r := s.reachFrom(flow); r != nil && r.secrets[name] != nil {
		return &r.secrets[name].Secret
	}
	return nil
}

// reachFrom is what a flow sees. A flow that is not deployed any more sees what its directory
// has, unless flows of that prefix come from several directories.
func (s *Set) reachFrom(flow string) *reach {
	if r := s.reachOf[flow]; r != nil {
		return r
	}
	var found *reach
	prefix := flow[:strings.LastIndex(flow, "/")+1]
	for _, r := range s.reach {
		switch {
		case r.prefix != prefix:
		case found != nil:
			return nil
		default:
			found = r
		}
	}
	return found
}

// folderOf is the absolute path of the directory of a file.
func folderOf(file string) string {
	abs, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return filepath.Dir(file)
	}
	return abs
}
