package httprule_test

import (
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/httprule"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, method, target string
		want                 bool
	}{
		{"GET https://example.com/a", "GET", "https://example.com/a", true},
		{"GET https://example.com/a", "GET", "https://EXAMPLE.com.:443/%61?x=1", true},
		{"GET https://example.com/a", "POST", "https://example.com/a", false},
		{"GET https://example.com/a", "HEAD", "https://example.com/a", false},
		{"GET,HEAD https://example.com/a", "HEAD", "https://example.com/a", true},
		{"GET https://example.com/a", "get", "https://example.com/a", false},
		{"GET https://example.com/a", "GET", "http://example.com/a", false},
		{"GET https://example.com/a", "GET", "http://example.com:443/a", false},
		{"GET https://example.com/a", "GET", "https://example.com:8443/a", false},
		{"GET https://example.com:8443/a", "GET", "https://example.com:8443/a", true},
		{"GET https://example.com/a", "GET", "https://www.example.com/a", false},
		{"GET https://example.com/a", "GET", "https://example.com.other.com/a", false},
		{"GET https://example.com/a", "GET", "https://example.com/a/", false},
		{"GET https://example.com/a", "GET", "https://example.com/A", false},
		{"GET https://example.com/", "GET", "https://example.com", true},
		{"GET https://example.com/", "GET", "https://example.com/a", false},
		{"GET https://example.com/a/", "GET", "https://example.com/a/", true},
		{"GET https://example.com/a/", "GET", "https://example.com/a", false},
		{"GET https://example.com/*", "GET", "https://example.com/", false},
		{"GET https://example.com/*", "GET", "https://example.com/a", true},
		{"GET https://example.com/*", "GET", "https://example.com/a/", false},
		{"GET https://example.com/*", "GET", "https://example.com/a/b", false},
		{"GET https://example.com/*/b", "GET", "https://example.com/a/b", true},
		{"GET https://example.com/*/b", "GET", "https://example.com/a/c", false},
		{"GET https://example.com/a/*/", "GET", "https://example.com/a/b/", true},
		{"GET https://example.com/**", "GET", "https://example.com/", true},
		{"GET https://example.com/**", "GET", "https://example.com/a/b/c/", true},
		{"GET https://example.com/a/**", "GET", "https://example.com/a", false},
		{"GET https://example.com/a/**", "GET", "https://example.com/a/", true},
		{"GET https://example.com/a/**", "GET", "https://example.com/a/b/c", true},
		{"GET https://example.com/a/**", "GET", "https://example.com/ab", false},
		{"GET https://example.com/%2A", "GET", "https://example.com/*", true},
		{"GET https://example.com/%2A", "GET", "https://example.com/a", false},
		{"GET https://example.com/a%20b/ü", "GET", "https://example.com/a%20b/%c3%bc", true},
		{"GET https://*.example.com/a", "GET", "https://www.example.com/a", true},
		{"GET https://*.example.com/a", "GET", "https://a.b.example.com/a", true},
		{"GET https://*.example.com/a", "GET", "https://example.com/a", false},
		{"GET https://*.example.com/a", "GET", "https://wwwexample.com/a", false},
		{"GET https://*.example.com/a", "GET", "https://www.example.com.other.com/a", false},
		{"GET https://*.example.com/a", "GET", "https://www.example.com:444/a", false},
		{"GET https://*.amazonaws.com/a", "GET", "https://sts.eu-west-1.amazonaws.com/a", true},
		{"GET https://*.amazonaws.com/a", "GET", "https://anybody.s3.amazonaws.com/a", false},
		{"GET https://BÜCHER.example/a", "GET", "https://xn--bcher-kva.example/a", true},
		{"GET https://example.com/a", "GET", "https://еxample.com/a", false},
		{"GET http://192.0.2.1/a", "GET", "http://192.0.2.1/a", true},
		{"GET http://[2001:db8::1]:8080/a", "GET", "http://[2001:DB8::1]:8080/a", true},
	}
	for _, test := range tests {
		t.Run(test.rule+" "+test.method+" "+test.target, func(t *testing.T) {
			t.Parallel()
			rule, err := httprule.Parse(test.rule)
			if err != nil {
				t.Fatal(err)
			}
			target, err := httprule.ParseTarget(test.target)
			if err != nil {
				t.Fatal(err)
			}
			if got := rule.Match(test.method, target); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPathRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		base, rule, target string
		want               bool
	}{
		{"https://api.example.com", "GET /repos/**", "https://api.example.com/repos/a/b", true},
		{"https://api.example.com", "GET /repos/**", "https://api.example.com/users", false},
		{"https://api.example.com/v3", "GET /repos/**", "https://api.example.com/v3/repos/a", true},
		{"https://api.example.com/v3/", "GET /repos/**", "https://api.example.com/v3/repos/a", true},
		{"https://api.example.com/v3", "GET /repos/**", "https://api.example.com/repos/a", false},
		{"https://api.example.com/v3", "GET /**", "https://api.example.com/v3", false},
		{"https://api.example.com/v3", "GET /**", "https://api.example.com/v3/", true},
		{"https://api.example.com/v3", "GET /**", "https://api.example.com/v30/", false},
		{"https://api.example.com/v3", "GET /**", "https://www.api.example.com/v3/a", false},
		{"https://api.example.com/*", "GET /**", "https://api.example.com/x/a", false},
		{"https://api.example.com", "GET /", "https://api.example.com/", true},
		{"https://api.example.com:8443", "GET /", "https://api.example.com/", false},
	}
	for _, test := range tests {
		t.Run(test.base+" "+test.rule+" "+test.target, func(t *testing.T) {
			t.Parallel()
			rule, err := httprule.ParsePath(test.rule)
			if err != nil {
				t.Fatal(err)
			}
			base, err := httprule.ParseBase(test.base)
			if err != nil {
				t.Fatal(err)
			}
			target, err := httprule.ParseTarget(test.target)
			if err != nil {
				t.Fatal(err)
			}
			if rule.Match("GET", target) {
				t.Error("it matches without a base")
			}
			if got := rule.Below(base).Match("GET", target); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestExact(t *testing.T) {
	t.Parallel()
	base, err := httprule.ParseBase("https://api.example.com/v3/")
	if err != nil {
		t.Fatal(err)
	}
	target, err := base.Join("/a/*?x=1")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := httprule.Exact("GET", target).String(), "GET https://api.example.com/v3/a/%2A"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	rule := httprule.ExactPath("GET", base, target)
	if got, want := rule.String(), "GET /a/%2A"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !rule.Below(base).Match("GET", target) {
		t.Error("it does not match its own target")
	}
}

func TestZeroRule(t *testing.T) {
	t.Parallel()
	target, err := httprule.ParseTarget("https://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	if (httprule.Rule{}).Match("GET", target) || (httprule.Rule{}).Match("", &httprule.Target{}) {
		t.Error("it matches")
	}
}

var wrongRules = map[string]string{
	"":                                 "write methods",
	"https://example.com/":             "write methods",
	"GET":                              "write methods",
	"GET, POST https://example.com/a":  "write methods",
	"* https://example.com/a":          "GET,POST instead of *",
	"get https://example.com/a":        "upper-case",
	"GET, https://example.com/a":       "upper-case",
	"CONNECT https://example.com/a":    "cannot be allowed",
	"GET,TRACE https://example.com/a":  "cannot be allowed",
	"GET example.com/a":                "write GET https://example.com/a",
	"GET /a":                           "no scheme",
	"GET *://example.com/a":            "a rule for each",
	"GET ftp://example.com/a":          "neither http nor https",
	"GET https://example.com":          "write GET https://example.com/**",
	"GET https://*.example.com":        "write GET https://*.example.com/**",
	"GET https:///a":                   "host is missing",
	"GET https://*/a":                  "* that is not its first part",
	"GET https://**/a":                 "* that is not its first part",
	"GET https://*.*.example.com/a":    "* that is not its first part",
	"GET https://a.*.example.com/a":    "* that is not its first part",
	"GET https://*example.com/a":       "* that is not its first part",
	"GET https://*.com/a":              "public suffix com",
	"GET https://*.co.uk/a":            "public suffix co.uk",
	"GET https://*.github.io/a":        "public suffix github.io",
	"GET https://*.s3.amazonaws.com/a": "public suffix s3.amazonaws.com",
	"GET https://*.internal/a":         "public suffix internal",
	"GET https://*.公司.cn/a":            "public suffix",
	"GET https://*.192.0.2.1/a":        "IP address",
	"GET https://*./a":                 "host is missing",
	"GET https://example.com:*/a":      "* that is not",
	"GET https://example.com:0/a":      "port",
	"GET https://user@example.com/a":   "user",
	"GET https://127.1/a":              "unusual spelling",
	"GET https://example.com/a*":       "%2A",
	"GET https://example.com/***":      "%2A",
	"GET https://example.com/**/a":     "last segment",
	"GET https://example.com/**/":      "last segment",
	"GET https://example.com/a?b":      "no query",
	"GET https://example.com/a#b":      "no query or fragment",
	"GET https://example.com/a/../b":   "relative",
	"GET https://example.com/a//b":     "//",
	"GET https://example.com/a%2fb":    "slash",
	"GET https://example.com/\x00":     "control",
	strings.Repeat("G", 9000):          "longer",
}

func TestWrongRules(t *testing.T) {
	t.Parallel()
	for text, want := range wrongRules {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			t.Parallel()
			rule, err := httprule.Parse(text)
			if err == nil {
				t.Fatalf("it is %s", rule)
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want %q in it", err, want)
			}
		})
	}
}

func TestWrongPathRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"GET https://example.com/a": "write GET /path",
		"GET a":                     "write GET /path",
		"GET *":                     "write GET /path",
		"/a":                        "write methods",
		"GET /a?b":                  "no query",
		"GET //example.com/a":       "//",
		"GET /**/a":                 "last segment",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if rule, err := httprule.ParsePath(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, %v, want %q in it", rule, err, want)
			}
		})
	}
}

// FuzzParse holds that a rule's text in canonical form is the same rule.
func FuzzParse(f *testing.F) {
	for text := range wrongRules {
		f.Add(text)
	}
	f.Add("POST,GET https://*.Example.com:8443/a/*/%2A/**")
	f.Add("GET http://[2001:db8::1]/ü/")
	f.Add("GET /a/*/%2A/**")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (httprule.Rule, error){httprule.Parse, httprule.ParsePath} {
			rule, err := parse(text)
			if err != nil {
				continue
			}
			again, err := parse(rule.String())
			if err != nil || again.String() != rule.String() {
				t.Fatalf("%q is %s, which is %s, %v", text, rule, again, err)
			}
		}
	})
}
