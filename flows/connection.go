package flows

import (
	"math"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/run/access"
)

// Connection is a connection block.
type Connection struct {
	access.Connection
	Prefix string    // of the names of the flows that see it, "billing/"
	Range  hcl.Range // of the block's header

	block *hcl.Block
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
