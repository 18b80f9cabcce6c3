package guest

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzHead holds the heads that guests write, and what they read of the host's, against
// encoding/json. In both, a byte that is not of UTF-8 becomes U+FFFD.
func FuzzHead(f *testing.F) {
	f.Add("a", "b", int64(1), uint64(2), true)
	f.Add("\"\\\n", "é\x00", int64(-1), uint64(0), false)
	f.Add("", "{}[],:", int64(0), uint64(1<<63), true)
	f.Add("\xff\xfe", "half \xc3", int64(2), uint64(3), false)
	f.Add(`\`, `\"\\`, int64(1), uint64(1), true)
	f.Fuzz(func(t *testing.T, a, b string, n int64, u uint64, yes bool) {
		type object struct {
			A, B  string
			N     int64
			U     uint64
			Yes   bool
			List  []string
			Lists map[string][]string
		}
		lists := map[string][]string{"one " + a: {b}, "two " + b: nil}
		var head Head
		head.Text("A", a)
		head.Text("B", b)
		head.Int("N", n)
		head.Uint("U", u)
		head.Bool("Yes", yes)
		head.Texts("List", []string{a, b, ""})
		head.Lists("Lists", lists)
		var got object
		if err := json.Unmarshal(head.JSON(), &got); err != nil {
			t.Fatalf("%s: %v", head.JSON(), err)
		}
		a, b = string([]rune(a)), string([]rune(b))
		want := object{a, b, n, u, yes, []string{a, b, ""}, map[string][]string{"one " + a: {b}, "two " + b: {}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", head.JSON(), got, want)
		}

		host, err := json.Marshal(map[string]any{"text": a, "number": n, "list": []string{a, b, "]"}, "object": map[string]string{"x": "}" + a}, "null": nil, "yes": yes})
		if err != nil {
			t.Fatal(err)
		}
		members := map[string]string{}
		Members(host, func(name string, value []byte) { members[name] = string(value) })
		if len(members) != 6 || TextOf([]byte(members["text"])) != a || IntOf([]byte(members["number"])) != n || members["null"] != "null" {
			t.Errorf("%s gave %q", host, members)
		}
		var list []string
		Elements([]byte(members["list"]), func(value []byte) { list = append(list, TextOf(value)) })
		if !reflect.DeepEqual(list, []string{a, b, "]"}) {
			t.Errorf("%s gave %q", members["list"], list)
		}
		Members([]byte(a), func(string, []byte) {}) // whatever it is
		Elements([]byte(a), func([]byte) {})
	})
}
