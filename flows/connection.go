package flows

import (
	"math"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run/access"
)

// Connection is a connection block.
type Connection struct {
	access.Connection
	Prefix string    // of the names of the flows that see it, "billing/"
	Range  hcl.Range // of the block's header

	block *hcl.Block
}

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

// reachDecoder reads a block that states what may be reached.
type reachDecoder struct {
	*exprContext
	content *lang.Content
}

// inner is a block within this one; ok is false without one.
func (d reachDecoder) inner(name string) (reachDecoder, bool) {
	b := d.content.One(name)
	if b == nil {
		return reachDecoder{}, false
	}
	s, c := d.decodeAt(b, d.schema.Block(name).Body)
	return reachDecoder{s, c}, true
}

// word is an argument that is one of a few strings, or what it is by default.
func (d reachDecoder) word(name, otherwise string) string {
	if word, ok := d.exprContext.word(d.content.Arg(name)); ok {
		return word
	}
	return otherwise
}

// checked is a string of a certain form, empty if it is absent or wrong.
func (d reachDecoder) checked(name string, check func(string) error) string {
	a := d.content.Arg(name)
	text, ok := d.text(a)
	if !ok || !d.fits(a, a.Expr.Range(), text, check) {
		return ""
	}
	return text
}

func (d reachDecoder) fits(a *hcl.Attribute, at hcl.Range, text string, check func(string) error) bool {
	err := check(text)
	if err != nil {
		d.diags.Add(RuleValue, at, "Value not allowed", "%q in %q cannot be used: %s.", text, a.Name, err)
	}
	return err == nil
}

// list is a list of strings, each as the check gives it.
func (d reachDecoder) list(name string, canonical func(string) (string, error)) []string {
	a := d.content.Arg(name)
	v, ok := d.value(a, cty.List(cty.String))
	if !ok {
		return nil
	}
	written, diags := hcl.ExprList(a.Expr)
	var out []string
	for i, one := range v.AsValueSlice() {
		at := a.Expr.Range()
		if !diags.HasErrors() && i < len(written) {
			at = written[i].Range()
		}
		if one.IsNull() {
			d.diags.Add(RuleValue, at, "Value not allowed", "%q has a null in it.", a.Name)
			continue
		}
		text, err := canonical(one.AsString())
		if err != nil {
			d.diags.Add(RuleValue, at, "Value not allowed", "%q in %q cannot be used: %s.", one.AsString(), a.Name, err)
			continue
		}
		out = append(out, text)
	}
	return out
}

// as makes of a check what list needs.
func as(check func(string) error) func(string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

// secretIn is the handle of a secret that an expression is; ok is false for any other.
func (s *exprContext) secretIn(e hcl.Expression) (string, bool) {
	t, ok := syntax.Reference(e)
	if !ok || t.RootName() != "secret" {
		return "", false
	}
	name, at, ok := syntax.Step(t, 1)
	if !ok || len(t) != 2 {
		s.diags.Add(RuleReference, e.Range(), "A reference to a secret is required", "Write secret.NAME: a secret has no parts, and its name is written out.")
		return "", true
	}
	b := &binding{exprContext: s, x: new(expression)}
	if !b.declares(rootWord("secret"), name) && s.module.restored == nil {
		b.unknownName(rootWord("secret"), name, at)
	}
	return name, true
}

// handle is an argument that takes a secret only.
func (d reachDecoder) handle(name string) access.Value {
	a := d.content.Arg(name)
	if a == nil {
		return access.Value{}
	}
	secret, ok := d.secretIn(a.Expr)
	if !ok {
		d.diags.Add(RuleType, a.Expr.Range(), "A secret is required",
			"%q is a credential, and flow files are stored and shown: declare secret \"NAME\" { … }, and write %s = secret.NAME, alone.", name, name)
	}
	return d.own(secret, a.Expr.Range())
}

// own refuses a secret of the settings of the host in a connection of a flow file: its author
// could send it anywhere.
func (d reachDecoder) own(name string, at hcl.Range) access.Value {
	if d.module.options.Operator.secret(name) != nil && d.module.reach.secrets[name] == nil && d.module.restored == nil {
		d.diags.Add(RuleMisplaced, at, "A secret of the host's settings",
			"secret.%s belongs to the settings of the host, and to the connections there. Declare this connection there, or a secret here.", name)
	}
	return access.Value{Secret: name}
}

// url is the beginning of URLs.
func (d reachDecoder) url(name string) string {
	a := d.content.Arg(name)
	text, ok := d.text(a)
	if !ok {
		return ""
	}
	if err := reachspec.BaseURL(text); err != nil {
		d.unfit(a, err)
		return ""
	}
	return text
}

// unfit reports a text that may hold a credential: it is not repeated.
func (d reachDecoder) unfit(a *hcl.Attribute, err error) {
	d.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q cannot be used: %s.", a.Name, err)
}

// textOrSecret is an argument that is shown in lists as far as it is a text.
func (d reachDecoder) textOrSecret(name string, check func(string) error) access.Value {
	a := d.content.Arg(name)
	if a == nil {
		return access.Value{}
	}
	if secret, ok := d.secretIn(a.Expr); ok {
		return d.own(secret, a.Expr.Range())
	}
	text, ok := d.text(a)
	if ok && check != nil {
		if err := check(text); err != nil {
			d.unfit(a, err)
		}
	}
	return access.Value{Text: text}
}

// oneOf is the one word of several that the block has, reported if that is not so.
func (d reachDecoder) oneOf(words []string) string {
	found := ""
	for _, word := range words {
		var at hcl.Range
		if a := d.content.Arg(word); a != nil {
			at = a.NameRange
		} else if b := d.content.One(word); b != nil {
			at = b.DefRange
		} else {
			continue
		}
		if found != "" {
			d.diags.Add(RuleConflict, at, "Arguments exclude each other", "%s has one of these: leave %q or %q out.", diag.Sentence(d.schema.Title), found, word)
			return ""
		}
		found = word
	}
	if found == "" {
		d.diags.Add(RuleMissing, d.content.At, "Missing argument", "%s needs one of %s.", diag.Sentence(d.schema.Title), diag.Join(words, "and"))
	}
	return found
}

// connection reads a connection block.
func (d reachDecoder) connection(x *access.Connection) {
	x.Type = d.word("type", "")
	http, sql, smtp := d.http(), d.sql(), d.smtp()
	x.TLS = d.tls(x.Type)
	if d.content.Arg("proxy") != nil {
		proxy := d.textOrSecret("proxy", reachspec.Proxy)
		x.Proxy = &proxy
	}
	x.Private = d.list("private", as(reachspec.Address))
	if inner, ok := d.inner("limit"); ok {
		x.Limit = inner.limit()
	}
	switch x.Type {
	case "":
		return // which is reported
	case access.TypeHTTP:
		x.HTTP = http
	case access.TypeSMTP:
		x.SMTP = smtp
	default:
		x.SQL = sql
	}
	d.ofType(x.Type)
}

// ofType reports what connections of the type do not have, and what they need.
func (d reachDecoder) ofType(typ string) {
	misfit := func(word string, at hcl.Range) {
		if !reachspec.Has(typ, word) {
			d.diags.Add(RuleConflict, at, "Not of this type", "Connections of type %q have no %q: it belongs to type %s.", typ, word, diag.Join(reachspec.TypesOf[word], "and"))
		}
	}
	for _, word := range keys(d.content.Args) {
		misfit(word, d.content.Args[word].NameRange)
	}
	for _, word := range keys(d.content.Blocks) {
		misfit(word, d.content.One(word).DefRange)
	}
	for _, word := range reachspec.Required[typ] {
		if d.content.Arg(word) == nil {
			d.diags.Add(RuleMissing, d.content.At, "Missing argument", "A connection of type %q needs the argument %q: write %s = …", typ, word, word)
		}
	}
}

func (d reachDecoder) http() *access.HTTPConnection {
	x := &access.HTTPConnection{
		BaseURL: d.url("base_url"), Allow: d.list("allow", reachspec.PathRule),
		Headers: d.headers(), Redirects: d.redirects(), MaxBody: d.maxBody(),
	}
	x.Timeout, _ = d.duration(d.content.Arg("timeout"))
	d.emptyAllow()
	if inner, ok := d.inner("auth"); ok {
		x.Auth = inner.auth()
	}
	if inner, ok := d.inner("retry"); ok {
		x.Retry = new(access.Retry)
		if n, ok := inner.whole(inner.content.Arg("attempts"), 1, 10); ok {
			x.Retry.Attempts = int(n)
		}
		x.Retry.Delay, _ = inner.duration(inner.content.Arg("delay"))
	}
	return x
}

// emptyAllow reports a list that allows nothing.
func (d reachDecoder) emptyAllow() {
	a := d.content.Arg("allow")
	if a == nil {
		return
	}
	if items, diags := hcl.ExprList(a.Expr); !diags.HasErrors() && len(items) == 0 {
		d.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "\"allow\" is empty, and nothing could be requested: name what may be, or leave the block out.")
	}
}

func (d reachDecoder) redirects() int {
	n, _ := d.whole(d.content.Arg("redirects"), 0, access.MaxRedirects)
	return int(n)
}

func (d reachDecoder) maxBody() int64 {
	n, _ := d.withinSize(d.content.Arg("max_body"), access.MaxBody, 0)
	return n
}

// headers reads an object whose values are strings or secrets.
func (d reachDecoder) headers() map[string]access.Value {
	a := d.content.Arg("headers")
	if a == nil {
		return nil
	}
	pairs, diags := hcl.ExprMap(a.Expr)
	if diags.HasErrors() {
		d.diags.Add(RuleType, a.Expr.Range(), "Wrong type", "%q must be written out as an object: { Accept = \"application/json\" }.", a.Name)
		return nil
	}
	out := map[string]access.Value{}
	for _, p := range pairs {
		name, ok := d.key(p.Key)
		if !ok || !d.fits(a, p.Key.Range(), name, reachspec.Header) {
			continue
		}
		for known := range out {
			if strings.EqualFold(known, name) {
				d.diags.Add(RuleDuplicate, p.Key.Range(), "Duplicate header", "%q is there already. Leave one of the two out.", name)
			}
		}
		if secret, ok := d.secretIn(p.Value); ok {
			out[name] = d.own(secret, p.Value.Range())
			continue
		}
		value := &hcl.Attribute{Name: a.Name, Expr: p.Value, NameRange: a.NameRange, Range: a.Range}
		if v, ok := d.evaluate(value); ok {
			text, known := plainText(v)
			if !known || strings.ContainsAny(text, "\r\n\x00") {
				d.diags.Add(RuleType, p.Value.Range(), "Wrong type", "The header %q must be a string on one line, or secret.NAME.", name)
			}
			out[name] = access.Value{Text: text}
		}
	}
	return out
}

// plainText is a known string that is not sensitive.
func plainText(v cty.Value) (string, bool) {
	if v.IsMarked() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// key is the key of an object, which is written out.
func (s *exprContext) key(e hcl.Expression) (string, bool) {
	v, diags := e.Value(nil)
	text, ok := "", false
	if !diags.HasErrors() {
		text, ok = plainText(v)
	}
	if !ok {
		s.diags.Add(RuleType, e.Range(), "A constant is required", "The name must be written out.")
	}
	return text, ok
}

func (d reachDecoder) auth() *access.Auth {
	kind := d.oneOf(reachspec.Kinds)
	x := &access.Auth{Kind: kind, Token: d.handle("bearer")}
	inner, ok := d.inner(kind)
	if !ok {
		return x
	}
	switch kind {
	case access.AuthBasic:
		x.User, x.Password = inner.textOrSecret("user", nil), inner.handle("password")
	case access.AuthHeader:
		x.Name, x.Value = inner.checked("name", reachspec.Header), inner.handle("value")
	case access.AuthQuery:
		x.Name, x.Value = inner.checked("name", reachspec.NotEmpty), inner.handle("value")
	case access.AuthOAuth2:
		x.TokenURL = inner.url("token_url")
		x.ClientID, x.ClientSecret = inner.textOrSecret("client_id", nil), inner.handle("client_secret")
		x.Scopes = inner.list("scopes", as(reachspec.NotEmpty))
		x.Audience, _ = inner.text(inner.content.Arg("audience"))
	case access.AuthAWS:
		x.Region, x.Service = inner.checked("region", reachspec.NotEmpty), inner.checked("service", reachspec.NotEmpty)
		x.AccessKey, x.SecretKey, x.SessionToken = inner.textOrSecret("access_key", nil), inner.handle("secret_key"), inner.handle("session_token")
	}
	return x
}

func (d reachDecoder) sql() *access.SQLConnection {
	x := &access.SQLConnection{
		DSN: d.textOrSecret("dsn", reachspec.DSN), Path: d.checked("path", reachspec.Below),
		Access: access.Mode(d.word("access", string(access.ReadOnly))),
	}
	if n, ok := d.whole(d.content.Arg("max_open"), 1, 1000); ok {
		x.MaxOpen = int(n)
	}
	x.MaxIdle, _ = d.duration(d.content.Arg("max_idle"))
	return x
}

func (d reachDecoder) smtp() *access.SMTPConnection {
	x := &access.SMTPConnection{
		Host: d.checked("host", reachspec.Host), Port: 587, From: d.checked("from", reachspec.Mailbox), To: d.list("to", as(reachspec.Recipient)),
		User: d.textOrSecret("user", nil), Password: d.handle("password"), StartTLS: d.word("starttls", "required"),
	}
	if n, ok := d.whole(d.content.Arg("port"), 1, math.MaxUint16); ok {
		x.Port = int(n)
	}
	if user, password := d.content.Arg("user"), d.content.Arg("password"); (user == nil) != (password == nil) {
		d.diags.Add(RuleMissing, d.content.At, "user and password", "To log in, give both user and password; for a server without authentication give neither.")
	}
	return x
}

func (d reachDecoder) limit() access.Limit {
	var x access.Limit
	if n, ok := d.whole(d.content.Arg("concurrency"), 1, 10_000); ok {
		x.Concurrency = int(n)
	}
	if r := d.rate(d.content.Arg("rate")); r.Count > 0 {
		x.Rate, x.Burst = float64(r.Count)/r.Per.Seconds(), r.Count
	}
	return x
}

func (d reachDecoder) tls(typ string) *access.TLS {
	inner, ok := d.inner("tls")
	if !ok {
		return nil
	}
	x := &access.TLS{
		CA: inner.checked("ca", reachspec.Below), Cert: inner.checked("cert", reachspec.Below), Key: inner.checked("key", reachspec.Below),
		ServerName: inner.checked("server_name", reachspec.Host), Mode: inner.word("mode", ""),
	}
	if cert, key := inner.content.Arg("cert"), inner.content.Arg("key"); (cert == nil) != (key == nil) {
		d.diags.Add(RuleMissing, inner.content.At, "cert and key", "To show a certificate, give both cert and key; otherwise give neither.")
	}
	if mode := inner.content.Arg("mode"); mode != nil && (typ == access.TypeHTTP || typ == access.TypeSMTP) {
		d.diags.Add(RuleConflict, mode.NameRange, "Not of this type", "\"mode\" belongs to databases: connections of type %q always check the certificate. Leave it out.", typ)
	}
	return x
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
