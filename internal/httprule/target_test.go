package httprule_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/httprule"
)

func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://example.com":                      "https://example.com/",
		"HTTPS://EXAMPLE.com:443/":                 "https://example.com/",
		"https://example.com./a":                   "https://example.com/a",
		"http://example.com:80/a":                  "http://example.com/a",
		"http://example.com:443/a":                 "http://example.com:443/a",
		"https://example.com?q=1":                  "https://example.com/?q=1",
		"https://example.com/a?":                   "https://example.com/a",
		"https://example.com/%61%7e%2A":            "https://example.com/a~*",
		"https://example.com/a%20b/ü":              "https://example.com/a%20b/%C3%BC",
		"https://example.com/%c3%bc":               "https://example.com/%C3%BC",
		"https://example.com/a%252e":               "https://example.com/a%252e",
		"https://example.com/a/?x=%2F..%2f&y=/../": "https://example.com/a/?x=%2F..%2f&y=/../",
		"https://example.com/v1/x:run;v=1":         "https://example.com/v1/x:run;v=1",
		"https://example.com/a?b?c":                "https://example.com/a?b?c",
		"https://bücher.example/":                  "https://xn--bcher-kva.example/",
		"https://BÜCHER.example/":                  "https://xn--bcher-kva.example/",
		"https://xn--bcher-kva.example/":           "https://xn--bcher-kva.example/",
		"https://XN--BCHER-KVA.example/":           "https://xn--bcher-kva.example/",
		"https://ｅｘａｍｐｌｅ。com/":                     "https://example.com/",
		"https://еxample.com/":                     "https://xn--xample-2of.com/", // a Cyrillic letter
		"http://localhost./":                       "http://localhost/",
		"http://my_service:8080/":                  "http://my_service:8080/",
		"https://r3---sn-4g5e.example.com/":        "https://r3---sn-4g5e.example.com/",
		"http://192.0.2.1:8080/":                   "http://192.0.2.1:8080/",
		"http://[2001:DB8::1]/":                    "http://[2001:db8::1]/",
		"http://[::1]:80/":                         "http://[::1]/",
		"http://1.example.com/":                    "http://1.example.com/",
		"http://0xbeef.example/":                   "http://0xbeef.example/",
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			target, err := httprule.ParseTarget(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := target.URL(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// refused are targets without a canonical form, with a part of the reason.
var refused = map[string]string{
	"":                                                  "http://",
	"/a":                                                "http://",
	"//example.com/":                                    "http://",
	"ftp://example.com/":                                "neither http nor https",
	" https://example.com/":                             "neither http nor https",
	"https:example.com":                                 "http://",
	"https:///a":                                        "host is missing",
	"https://?a":                                        "host is missing",
	"https://./":                                        "host is missing",
	"https://example.com../":                            "not a name",
	"https://a..b/":                                     "not a name",
	"https://-a.example/":                               "not a name",
	"https://a b/":                                      "not a name",
	"https://exa\tmple.com/":                            "not a name",
	"https://exa\nmple.com/":                            "not a name",
	"https://example.com\\@other/":                      "user",
	"https://example.com\\.other/":                      "not a name",
	"https://exa%6dple.com/":                            "not a name",
	"https://user@example.com/":                         "user",
	"https://user:pass@example.com/":                    "user",
	"https://@example.com/":                             "user",
	"https://example.com#@other/":                       "fragment",
	"https://example.com/#":                             "fragment",
	"https://example.com:/":                             "port",
	"https://example.com:0/":                            "port",
	"https://example.com:080/":                          "port",
	"https://example.com:65536/":                        "port",
	"https://example.com:+80/":                          "port",
	"https://example.com:80:80/":                        "not a name",
	"https://127.1/":                                    "unusual spelling",
	"https://0x7f.1/":                                   "unusual spelling",
	"https://0177.0.0.1/":                               "unusual spelling",
	"https://2130706433/":                               "unusual spelling",
	"https://0x7f000001/":                               "unusual spelling",
	"https://127.0.0.0x1/":                              "unusual spelling",
	"https://127.0.0.1./":                               "unusual spelling",
	"https://１２７.0.0.1/":                                "unusual spelling",
	"https://127。0。0。1/":                                "unusual spelling",
	"https://256.0.0.1/":                                "unusual spelling",
	"https://a.1/":                                      "unusual spelling",
	"https://0x/":                                       "unusual spelling",
	"https://[::1/":                                     "bracket",
	"https://[::1]x/":                                   "bracket",
	"https://[]/":                                       "IPv6",
	"https://[127.0.0.1]/":                              "IPv6",
	"https://[::ffff:10.0.0.1]/":                        "write 10.0.0.1",
	"https://[::ffff:a00:1]/":                           "write 10.0.0.1",
	"https://[::10.0.0.1]/":                             "unusual spelling",
	"https://[0::1]/":                                   "unusual spelling",
	"https://[fe80::1%25lo]/":                           "zone",
	"https://[fe80::1%lo]/":                             "zone",
	"https://::1/":                                      "not a name",
	"https://xn--a.example/":                            "internationalized",
	"https://xn--/":                                     "host is missing",
	"https://example.com/a/../b":                        "relative",
	"https://example.com/./b":                           "relative",
	"https://example.com/..":                            "relative",
	"https://example.com/%2e%2E/b":                      "relative",
	"https://example.com/..;/b":                         "relative",
	"https://example.com/..%3b/b":                       "relative",
	"https://example.com/a//b":                          "//",
	"https://example.com//other/":                       "//",
	"https://example.com/a%2fb":                         "slash",
	"https://example.com/a\\b":                          "slash",
	"https://example.com/a%5Cb":                         "slash",
	"https://example.com/%":                             "%25",
	"https://example.com/%zz":                           "%25",
	"https://example.com/a%0d%0ab":                      "control",
	"https://example.com/a\r\nb":                        "control",
	"https://example.com/a%00":                          "control",
	"https://example.com/%ff":                           "UTF-8",
	"https://example.com/?a b":                          "query",
	"https://example.com/?a\nb":                         "query",
	"https://example.com/?ü":                            "query",
	"https://" + strings.Repeat("a", 64):                "not a name",
	"https://example.com/" + strings.Repeat("a", 8192):  "longer",
	"https://" + strings.Repeat("a.", 130) + "example/": "longer",
}

func TestRefusedTargets(t *testing.T) {
	t.Parallel()
	for raw, want := range refused {
		t.Run(raw[:min(len(raw), 60)], func(t *testing.T) {
			t.Parallel()
			target, err := httprule.ParseTarget(raw)
			if err == nil {
				t.Fatalf("it is %s", target.URL())
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want %q in it", err, want)
			}
			if strings.ContainsAny(err.Error(), "\r\n\t") || len(err.Error()) > 1000 {
				t.Errorf("the error repeats its input: %q", err)
			}
		})
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	tests := []struct{ base, raw, want string }{
		{"https://api.example.com", "/a?b", "https://api.example.com/a?b"},
		{"https://api.example.com/v3", "/a", "https://api.example.com/v3/a"},
		{"https://api.example.com/v3/", "/", "https://api.example.com/v3/"},
		{"https://api.example.com/v3/", "/a/", "https://api.example.com/v3/a/"},
		{"https://api.example.com/v3", "a", ""},
		{"https://api.example.com", "@other/", ""},
		{"https://api.example.com", ".other.com/", ""},
		{"https://api.example.com", "https://other.com/", ""},
		{"https://api.example.com", "//other.com/", ""},
		{"https://api.example.com/v3", "/../v4", ""},
		{"https://api.example.com", "", ""},
	}
	for _, test := range tests {
		t.Run(test.base+" "+test.raw, func(t *testing.T) {
			t.Parallel()
			base, err := httprule.ParseBase(test.base)
			if err != nil {
				t.Fatal(err)
			}
			got, err := base.Join(test.raw)
			switch {
			case test.want == "" && err == nil:
				t.Errorf("it is %s", got.URL())
			case test.want != "" && (err != nil || got.URL() != test.want):
				t.Errorf("got %v, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestBaseHasNoQuery(t *testing.T) {
	t.Parallel()
	if _, err := httprule.ParseBase("https://example.com/?key=1"); err == nil || !strings.Contains(err.Error(), "no query") {
		t.Errorf("got %v", err)
	}
}

// FuzzParseTarget holds that the canonical form is one, and that net/url, with which it is
// dialed, reads it as the matcher does.
func FuzzParseTarget(f *testing.F) {
	for raw := range refused {
		f.Add(raw)
	}
	for _, raw := range []string{"https://EXAMPLE.com.:8443/%61/*?a=%2f", "http://[2001:db8::1]:80", "http://bücher.example/ü"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := httprule.ParseTarget(raw)
		if err != nil {
			return
		}
		again, err := httprule.ParseTarget(target.URL())
		if err != nil || *again != *target {
			t.Fatalf("%q is %+v, and its URL %q is %+v, %v", raw, target, target.URL(), again, err)
		}
		u, err := url.Parse(target.URL())
		if err != nil {
			t.Fatalf("%q: net/url refuses %q: %v", raw, target.URL(), err)
		}
		if u.Scheme != target.Scheme || u.Host != target.Authority() || u.Hostname() != target.Host || u.EscapedPath() != target.Path ||
			u.RawQuery != target.Query || u.User != nil || u.Fragment != "" || u.String() != target.URL() {
			t.Fatalf("%q is %+v, and net/url reads %+v", raw, target, u)
		}
		if !httprule.Exact("GET", target).Match("GET", target) {
			t.Fatalf("%q: its own rule %s does not match", raw, httprule.Exact("GET", target))
		}
	})
}
