package access

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everything is a grant of each kind.
func everything() *Grants {
	return &Grants{
		Connections: []string{"github"},
		HTTP:        &HTTPGrant{Allow: []string{"GET https://example.com/a/**"}, Private: []string{"10.0.0.5:80"}, Redirects: 2, MaxBody: 32 << 20},
		KV:          map[string]Mode{"counters": ReadWrite}, Publish: []string{"orders.*"}, Request: []string{"pricing.v2"},
		Secrets: map[string]string{"token": "legacy"}, Env: map[string]string{"REGION": "eu"}, Clock: Real, Random: Real, Artifacts: true,
	}
}

func entries(all []Excess) []string {
	var out []string
	for _, x := range all {
		out = append(out, x.Key+": "+x.Entry+": "+x.Line)
	}
	return out
}

func TestExcessOfAnEmptyBlock(t *testing.T) {
	t.Parallel()
	connections := []*Connection{{Name: "github", Type: TypeHTTP, Private: []string{"10.0.0.9:443"}}}
	want := []string{
		`connections: connection "github": connections = ["github"]`,
		`http: "GET https://example.com/a/**": http { allow = ["GET https://example.com/a/**"] }`,
		`http: the address 10.0.0.5:80, which is not public: http { private = ["10.0.0.5:80"] }`,
		`http: 2 redirects: http { redirects = 2 }`,
		`http: responses of 32MiB: http { max_body = "32MiB" }`,
		`kv: bucket "counters" as "rw": kv = { "counters" = "rw" }`,
		`publish: messages to "orders.*": publish = ["orders.*"]`,
		`request: requests to "pricing.v2": request = ["pricing.v2"]`,
		`secrets: secret "legacy", handed to the guest: secrets = ["legacy"]`,
		`env: variable "REGION": env = ["REGION"]`,
		`clock: the real clock: clock = "real"`,
		`random: real random numbers: random = "real"`,
		`artifacts: artifacts: artifacts = true`,
		`private: the address 10.0.0.9:443 of connection "github", which is not public: private = ["10.0.0.9:443"]`,
	}
	if diff := cmp.Diff(want, entries(new(Allow).Excess(everything(), connections))); diff != "" {
		t.Error(diff)
	}
	if got := new(Allow).Excess(&Grants{}, nil); got != nil {
		t.Errorf("nothing is too much: %v", got)
	}
}

// TestTwoKeys has no allow block: only what takes two keys is not included.
func TestTwoKeys(t *testing.T) {
	t.Parallel()
	var none *Allow
	want := []string{"http", "secrets", "clock", "private"}
	var got []string
	for _, x := range none.Excess(everything(), []*Connection{{Name: "github", Private: []string{"10.0.0.9:443"}}}) {
		got = append(got, x.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, tt := range map[string]struct {
		grants      Grants
		connections []*Connection
		excess      int
	}{
		"a clock alone":                 {Grants{Clock: Real}, nil, 0},
		"a clock and keys":              {Grants{Clock: Real, KV: map[string]Mode{"a": ReadWrite}}, nil, 0},
		"a clock and a local file":      {Grants{Clock: Real, Connections: []string{"stock"}}, []*Connection{{Name: "stock", Type: TypeSQLite}}, 0},
		"a clock and a database":        {Grants{Clock: Real, Connections: []string{"stock"}}, []*Connection{{Name: "stock", Type: TypePostgres}}, 1},
		"a clock and what is not known": {Grants{Clock: Real, Connections: []string{"stock"}}, nil, 1},
		"a clock and http":              {Grants{Clock: Real, HTTP: &HTTPGrant{Allow: []string{"GET https://example.com/"}}}, nil, 1},
		"a clock and messages":          {Grants{Clock: Real, Publish: []string{"a"}}, nil, 1},
		"a clock and requests":          {Grants{Clock: Real, Request: []string{"a"}}, nil, 1},
		"http":                          {Grants{HTTP: &HTTPGrant{Allow: []string{"GET https://example.com/"}, Redirects: 3}}, nil, 0},
	} {
		if got := none.Excess(&tt.grants, tt.connections); len(got) != tt.excess {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFilesOfABlock(t *testing.T) {
	t.Parallel()
	a := &Allow{Files: map[string]Mode{"data": ReadOnly, "out": ReadWrite}}
	for _, tt := range []struct {
		path string
		mode Mode
		want bool
	}{
		{"data", ReadOnly, true}, {"data/in", ReadOnly, true}, {"data", ReadWrite, false}, {"database", ReadOnly, false},
		{"out/x", ReadWrite, true}, {"out", ReadOnly, true}, {"other", ReadOnly, false},
	} {
		if got := a.IncludesFiles(tt.path, tt.mode); got != tt.want {
			t.Errorf("%s as %s: %t", tt.path, tt.mode, got)
		}
	}
	if all := (&Allow{Files: map[string]Mode{".": ReadOnly}}); !all.IncludesFiles("a/b", ReadOnly) || all.IncludesFiles("a", ReadWrite) {
		t.Error("the directory of the flow file does not include what is below it, as it is granted")
	}
}

// random draws from few words, so that grants and bounds often meet.
type random struct{ *rand.Rand }

func (r random) some(words ...string) []string {
	var out []string
	for _, w := range words {
		if r.IntN(3) == 0 {
			out = append(out, w)
		}
	}
	return out
}

func (r random) one(words ...string) string { return words[r.IntN(len(words))] }

func (r random) modes(words ...string) map[string]Mode {
	var out map[string]Mode
	for _, w := range r.some(words...) {
		if out == nil {
			out = map[string]Mode{}
		}
		out[w] = Mode(r.one("ro", "rw"))
	}
	return out
}

func (r random) http() *HTTPGrant {
	if r.IntN(3) == 0 {
		return nil
	}
	return &HTTPGrant{
		Allow:   r.some("GET https://a.example.com/x", "GET,POST https://a.example.com/*", "GET https://*.example.com/**", "POST https://a.example.com/x/y"),
		Private: r.some("10.0.0.5:80", "10.0.0.6:80"), Redirects: r.IntN(3), MaxBody: int64(r.IntN(3)) * 20 << 20,
	}
}

func (r random) grants() *Grants {
	g := &Grants{
		Connections: r.some("a", "b"), HTTP: r.http(), KV: r.modes("k", "l"),
		Publish: r.some("o.a", "o.*", "o.>", "p.a.b"), Request: r.some("o.a", "o.*", "o.>"),
		Clock: r.one("", Real), Random: r.one("", Real), Artifacts: r.IntN(2) == 0,
	}
	for _, name := range r.some("s", "t") {
		g.Secrets = map[string]string{"x": name}
	}
	for _, name := range r.some("E", "F") {
		g.Env = map[string]string{name: "1"}
	}
	return g
}

func (r random) allow() *Allow {
	return &Allow{
		Pattern: "*", Connections: r.some("a", "b", "*"), HTTP: r.http(), KV: r.modes("k", "l", "*"), Files: r.modes("data", "."),
		Publish: r.some("o.a", "o.*", "o.>", "p.>"), Request: r.some("o.a", "o.*", "o.>"), Secrets: r.some("s", "*"), Env: r.some("E", "*"),
		Private: r.some("10.0.0.9:443"), Clock: r.one("", Real), Random: r.one("", Real), Artifacts: r.IntN(2) == 0,
	}
}

// without are all ways to leave one optional key or entry out of a struct.
func without(v reflect.Value, leave func(what string)) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		before := reflect.New(f.Type()).Elem()
		before.Set(f)
		if f.IsZero() || name == "Pattern" {
			continue
		}
		f.SetZero()
		leave(name)
		f.Set(before)
		switch f.Kind() {
		case reflect.Slice:
			for n := range f.Len() {
				f.Set(reflect.AppendSlice(f.Slice3(0, n, n), f.Slice(n+1, f.Len())))
				leave(fmt.Sprintf("%s[%d]", name, n))
				f.Set(before)
			}
		case reflect.Map:
			for _, key := range f.MapKeys() {
				value := f.MapIndex(key)
				f.SetMapIndex(key, reflect.Value{})
				leave(fmt.Sprintf("%s[%s]", name, key))
				f.SetMapIndex(key, value)
			}
		case reflect.Pointer:
			without(f.Elem(), func(what string) {
				if what != "MaxBody" { // left out it is the stated default, and not less
					leave(name + "." + what)
				}
			})
		}
	}
}

// TestAbsentMeansDenied leaves each key and each entry out of random blocks: what is allowed
// then was allowed before. It leaves them out of grants: what was allowed stays so.
func TestAbsentMeansDenied(t *testing.T) {
	t.Parallel()
	connections := []*Connection{{Name: "a", Type: TypeHTTP, Private: []string{"10.0.0.9:443"}}, {Name: "b", Type: TypeSQLite}}
	allowed, left := 0, 0
	for seed := range uint64(400) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		g, a := r.grants(), r.allow()
		if seed%2 == 0 { // most pairs at random are not included
			a = g.bound()
			a.Pattern, a.Private = "*", connections[0].Private
		}
		granted := slices.DeleteFunc(slices.Clone(connections), func(c *Connection) bool { return !slices.Contains(g.Connections, c.Name) })
		before := entries(a.Excess(g, granted))
		if before == nil {
			allowed++
		}
		files := a.IncludesFiles("data/x", ReadWrite)
		without(reflect.ValueOf(a).Elem(), func(what string) {
			left++
			chosen, err := Select([]Allow{*a}, "f")
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range before {
				if !slices.Contains(entries(chosen.Excess(g, granted)), x) {
					t.Fatalf("without %s of the block, it allows %s", what, x)
				}
			}
			if chosen.IncludesFiles("data/x", ReadWrite) && !files {
				t.Fatalf("without %s of the block, it allows a directory", what)
			}
		})
		before = entries(a.Excess(g, granted))
		without(reflect.ValueOf(g).Elem(), func(what string) {
			left++
			for _, x := range entries(a.Excess(g, granted)) {
				if !slices.Contains(before, x) {
					t.Fatalf("without %s of the grant, it has %s", what, x)
				}
			}
		})
	}
	if allowed < 150 || left < 4000 {
		t.Errorf("%d grants allowed, %d keys left out", allowed, left)
	}
}

// TestGrantsIncludeThemselves holds for random grants, also after they have been stored.
func TestGrantsIncludeThemselves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		g := random{rand.New(rand.NewPCG(seed, 2))}.grants()
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		var again Grants
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if x := g.Excess(&again); x != nil {
			t.Fatalf("%s: %v", text, x)
		}
		if x := again.Excess(g); x != nil {
			t.Fatalf("%s: %v", text, x)
		}
	}
}
