package access

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Target is where a connection leads, without credentials.
func (c *Connection) Target() string {
	switch {
	case c.HTTP != nil:
		return c.HTTP.BaseURL
	case c.SMTP != nil:
		return fmt.Sprintf("%s:%d", c.SMTP.Host, cmp.Or(c.SMTP.Port, DefaultMailPort))
	case c.SQL == nil:
		return "nowhere"
	case c.SQL.Path != "":
		return c.SQL.Path
	case c.SQL.DSN.Secret != "":
		return "secret." + c.SQL.DSN.Secret
	}
	if u, err := url.Parse(c.SQL.DSN.Text); err == nil && u.Host != "" {
		return u.Host + u.Path
	}
	_, server, _ := strings.Cut(c.SQL.DSN.Text, "@") // user@tcp(db.example.com:3306)/shop?tls=true
	server, _, _ = strings.Cut(server, "?")
	return cmp.Or(server, "a database")
}

// Secrets returns the names of the secrets that the connection uses, sorted.
func (c *Connection) Secrets() []string {
	var values []Value
	if c.Proxy != nil {
		values = append(values, *c.Proxy)
	}
	if c.HTTP != nil {
		values = slices.AppendSeq(values, maps.Values(c.HTTP.Headers))
		if a := c.HTTP.Auth; a != nil {
			values = append(values, a.User, a.Password, a.Token, a.Value, a.ClientID, a.ClientSecret, a.AccessKey, a.SecretKey, a.SessionToken)
		}
	}
	if c.SQL != nil {
		values = append(values, c.SQL.DSN)
	}
	if c.SMTP != nil {
		values = append(values, c.SMTP.User, c.SMTP.Password)
	}
	var names []string
	for _, v := range values {
		if v.Secret != "" {
			names = append(names, v.Secret)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Source is where a secret's value is read from.
func (s *Secret) Source() string {
	key := ""
	if s.Key != "" {
		key = ", key " + s.Key
	}
	switch {
	case s.Env != "":
		return "env " + s.Env
	case s.File != "":
		return "file " + s.File
	case s.Age != "":
		return "age " + s.Age + key
	case s.Vault != "":
		return "vault " + s.Vault + key
	}
	return "nowhere"
}
