package jsonscan_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/internal/jsonscan"
)

// Members agrees with encoding/json about every object.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":"b","c":[1,{"d":"]}"}],"e":{"f":null}}`, "{ \"a\" : -1.5e3 ,\n\"b\"\t: true }", `{"a":1,"a":2}`,
		`{"\u0061":"\"","b\\":"é","":""}`, `[]`, `1`, `"a"`, `null`, ``, `{`, `{"a"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal(data, &want) == nil && want != nil
		got := map[string]json.RawMessage{}
		err := jsonscan.Members(data, func(name string, value []byte) error {
			got[name] = value
			var a, b string
			if x, y := json.Unmarshal(value, &a), jsonscan.Decode(value, &b); a != b || (x == nil) != (y == nil) {
				t.Errorf("%s is decoded as %q, %v; want %q, %v", value, b, y, a, x)
			}
			return nil
		})
		if bounded(err) {
			return
		}
		if (err == nil) != valid {
			t.Fatalf("%q: %v", data, err)
		}
		if valid && !cmp.Equal(want, got) {
			t.Errorf("%q: %s", data, cmp.Diff(want, got))
		}
	})
}

func TestMembersEnd(t *testing.T) {
	t.Parallel()
	enough, seen := errors.New("enough"), 0
	err := jsonscan.Members([]byte(`{"a":1,"b":2}`), func(string, []byte) error { seen++; return enough })
	if !errors.Is(err, enough) || seen != 1 {
		t.Errorf("%v after %d members", err, seen)
	}
}
