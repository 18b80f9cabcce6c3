package sqlreach_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run/access"
)

func TestDSN(t *testing.T) {
	t.Parallel()
	const pg, my = access.TypePostgres, access.TypeMySQL
	for _, c := range []struct{ kind, text, want string }{
		{pg, "postgres://bob:p%40ss@db.test:6000/shop?application_name=x", "bob p@ss db.test 6000  shop map[application_name:x]"},
		{pg, "postgresql://bob@db.test", "bob  db.test 5432   map[]"},
		{pg, "postgres://bob@[::1]:1/x", "bob  ::1 1  x map[]"},
		{pg, "postgres:///x?host=/run/pg&user=bob", "bob   5432 /run/pg x map[]"},
		{pg, "host=db.test user=bob password='a b\\'c' dbname=x", "bob a b'c db.test 5432  x map[]"},
		{pg, " host = db.test  user = bob ", "bob  db.test 5432   map[]"},
		{my, "bob:p@ss:/w?o&rd@tcp(db.test:3307)/shop", "bob p@ss:/w?o&rd db.test 3307  shop map[]"},
		{my, "bob:x@tcp(db.test)/shop?charset=utf8mb4", "bob x db.test 3306  shop map[charset:utf8mb4]"},
		{my, "bob@unix(/run/my.sock)/shop", "bob   3306 /run/my.sock shop map[]"},
		{my, "mysql://bob:x@db.test/shop", "bob x db.test 3306  shop map[]"},
		{my, "bob@tcp([::1]:3306)/", "bob  ::1 3306   map[]"},
	} {
		d, f := sqlreach.ParseDSN(c.kind, c.text)
		if f != nil {
			t.Errorf("%s: %+v", c.text, f)
			continue
		}
		if got := d.String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestDSNRefused(t *testing.T) {
	t.Parallel()
	const pg, my = access.TypePostgres, access.TypeMySQL
	for text, kind := range map[string]string{
		"": pg, "s3cret": pg, "postgres://bob:s3cret@": pg, "postgres://db.test/x": pg, "postgres://bob:s3cret@a,b/x": pg, "postgres://bob:s3cret@db.test:99999/x": pg,
		"postgres://bob:s3cret@db.test/x?options=-c%20x=y": pg, "postgres://bob:s3cret@db.test/x?service=y": pg, "postgres://bob:s3cret@db.test/x?servicefile=/y": pg,
		"postgres://bob:s3cret@db.test/x?passfile=/y": pg, "postgres://bob:s3cret@db.test/x?sslkey=/y": pg, "postgres://bob:s3cret@db.test/x?s3cret=1": pg,
		"postgres://bob:s3cret@db.test/x?default_transaction_read_only=off": pg, "postgres://bob:s3cret@db.test/x?role=root": pg, "host=db.test user=bob password='s3cret": pg,
		"postgres://bob:s3cret%@db.test/x": pg, "host=db.test user=bob hostaddr=10.0.0.1": pg, "postgres://bob:s3#cret@db.test/x": pg,
		"bob:s3cret@tcp(db.test)": my, "bob:s3cret@tcp(db.test/x": my, "bob:s3cret@pipe(x)/x": my, "bob:s3cret@tcp(db.test)/x?strict=true": my,
		"bob:s3cret@tcp(db.test)/x?allowAllFiles=true": my, "bob:s3cret@tcp(db.test)/x?allowFallbackToPlaintext=true": my, "bob:s3cret@tcp(db.test)/x?init_connect=y": my,
		"bob:s3cret@tcp(db.test)/x?sql_mode=ANSI": my, "bob:s3cret@tcp(db.test)/x?serverPubKey=y": my, "bob:s3cret@tcp(db.test)/x?s3cret=y": my, "bob:s3cret@tcp(a\x00)/x": my,
	} {
		_, f := sqlreach.ParseDSN(kind, text)
		if f == nil {
			t.Errorf("%q: no fault", text)
			continue
		}
		if f.Code != access.CodeInvalid {
			t.Errorf("%q: %+v", text, f)
		}
		hidden(t, fmt.Sprintf("%+v", withoutInside(f)), "s3cret", "s3#cret", "db.test", "bob", "root")
	}
}

// FuzzDSN looks for faults that repeat a password.
func FuzzDSN(f *testing.F) {
	for _, seed := range []string{"postgres://bob:PW@h/x?a=b", "bob:PW@tcp(h:1)/x?a=b", "host=h user=u password='PW' a=b", "mysql://b:PW@h:x/", "strict=true", "a:PW@tcp(h)/x?strict=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const canary = "Zq7canaryZq7"
		for _, kind := range []string{access.TypePostgres, access.TypeMySQL} {
			d, f := sqlreach.ParseDSN(kind, strings.ReplaceAll(text, "PW", canary))
			if f != nil && strings.Contains(fmt.Sprintf("%+v", *f), canary) {
				t.Errorf("%q: %+v", text, f)
			}
			if f == nil && d.String() == "" {
				t.Errorf("%q: nothing", text)
			}
		}
	})
}
