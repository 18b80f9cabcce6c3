package access

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	sql := func(dsn string) *Connection { return &Connection{SQL: &SQLConnection{DSN: Value{Text: dsn}}} }
	for _, tt := range []struct {
		c    *Connection
		want string
	}{
		{&Connection{HTTP: &HTTPConnection{BaseURL: "https://api.example.com/v1"}}, "https://api.example.com/v1"},
		{&Connection{SMTP: &SMTPConnection{Host: "mail.example.com"}}, "mail.example.com:587"},
		{&Connection{SMTP: &SMTPConnection{Host: "mail.example.com", Port: 465}}, "mail.example.com:465"},
		{&Connection{SQL: &SQLConnection{Path: "data/stock.db"}}, "data/stock.db"},
		{&Connection{SQL: &SQLConnection{DSN: Value{Secret: "dsn"}}}, "secret.dsn"},
		{sql("postgres://app:hunter2@db.example.com:5432/shop?sslmode=require"), "db.example.com:5432/shop"},
		{sql("app:hunter2@tcp(db.example.com:3306)/shop?password=x"), "tcp(db.example.com:3306)/shop"},
		{sql("password=hunter2 host=db"), "a database"},
		{&Connection{}, "nowhere"},
	} {
		if got := tt.c.Target(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// Every Value of a connection may be a secret, and none is forgotten.
func TestSecretsOfConnections(t *testing.T) {
	t.Parallel()
	c := &Connection{Proxy: &Value{}, HTTP: &HTTPConnection{Auth: &Auth{}}, SQL: &SQLConnection{}, SMTP: &SMTPConnection{}}
	var all []*Value
	for _, part := range []any{c, c.HTTP, c.HTTP.Auth, c.SQL, c.SMTP} {
		v := reflect.ValueOf(part).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i).Addr().Interface().(type) {
			case *Value:
				all = append(all, f)
			case **Value:
				all = append(all, *f)
			}
		}
	}
	if len(all) != 13 {
		t.Errorf("%d values", len(all))
	}
	for _, v := range all {
		v.Secret = "found"
		if diff := cmp.Diff([]string{"found"}, c.Secrets()); diff != "" {
			t.Error(diff)
		}
		v.Secret = ""
	}
	c.HTTP.Headers = map[string]Value{"A": {Secret: "b"}, "B": {Secret: "a"}, "C": {Secret: "a"}, "D": {Text: "x"}}
	if diff := cmp.Diff([]string{"a", "b"}, c.Secrets()); diff != "" {
		t.Error(diff)
	}
}
