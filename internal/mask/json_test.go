package mask_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, secret, raw, want string }{
		{"a string", "hunter2x", `{"a": "hunter2x", "b":[1 , "x hunter2x y"]}`, `{"a": "***", "b":[1 , "x *** y"]}`},
		{"a name", "hunter2x", `{"hunter2x":null}`, `{"***":null}`},
		{"escaped", "hunter2x", `["\u0068unter2x\n"]`, `["***\n"]`},
		{"all escaped", "hunter2x", `"\u0068\u0075\u006E\u0074\u0065\u0072\u0032\u0078\u0021"`, `"***\u0021"`},
		{"escaped twice", `hu"nt/er2`, `"{\"a\":\"hu\\\"nt\\\/er2\"}"`, `"{\"a\":\"***\"}"`},
		{"an escape at its border", "1BCDEF", `"\u0041BCDEF"`, `"***"`},
		{"what is written and not meant", `ab\ncdef`, `"ab\ncdef, ab\\ncdef"`, `"***, ***"`},
		{"a surrogate pair", "key😀key", `"<key\ud83d\ude00key\ud83d>"`, `"<***\ud83d>"`},
		{"a part of a pair", "key😀key", `"key\ud83dkey"`, `"key\ud83dkey"`},
		{"a part of a character", "secret\xf0\x9f", `"secret\ud83d\ude00!"`, `"***!"`},
		{"a number", "20261123", `{"pin":20261123,"other":-1.5e3}`, `{"pin":"***","other":-1.5e3}`},
		{"a part of a number", "20261123", `[120261123.5,2026112]`, `["***",2026112]`},
		{"over several", `"a":"b","c"`, `{"a":"b","c":1}`, `"***"`},
		{"not JSON", "hunter2x", `{"a":"hunter2x"`, `{"a":"***"`},
		{"empty", "hunter2x", ``, ``},
		{"base64", "hunter2x", `{"a":"aHVudGVyMng="}`, `{"a":"***"}`},
		{"a URL", "hu nt/er2", `"http://x/hu%20nt%2Fer2?q=hu+nt%2Fer2"`, `"http://x/***?q=***"`},
		{"nothing", "hunter2x", `{"a":"hunter2 \\x"}`, `{"a":"hunter2 \\x"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := string(masker(test.secret).JSON(json.RawMessage(test.raw))); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// leaves returns all names and strings of a JSON value.
func leaves(t *testing.T, raw []byte) string {
	t.Helper()
	var all strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all.WriteString(v + "\n")
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for name, e := range v {
				walk(name)
				walk(e)
			}
		}
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	walk(value)
	return all.String()
}

func FuzzJSON(f *testing.F) {
	f.Add("hunter2x", `{"a":["hunter2x\u0041",{"hunter2x":"\ud83d\ude00"}]}`)
	f.Add("1BCDEF", `"\u0041BCDEF"`)
	f.Add(`ab\ncdef`, `["ab\ncdef",1.5]`)
	f.Add("20261123", `20261123`)
	f.Fuzz(func(t *testing.T, secret, raw string) {
		secret = strings.TrimSpace(secret)
		if len(secret) < 6 || strings.Contains(secret, "*") || !json.Valid([]byte(raw)) {
			return
		}
		m := masker(secret)
		got := m.JSON(json.RawMessage(raw))
		if text := leaves(t, got); strings.Contains(text, secret) && !strings.Contains(secret, "\n") {
			t.Errorf("%q survives in %s, made of %s", secret, got, raw)
		}
		if strings.Contains(string(got), secret) {
			t.Errorf("%q is written in %s, made of %s", secret, got, raw)
		}
		if !strings.Contains(string(got), "***") && string(got) != raw {
			t.Errorf("%s became %s without a secret", raw, got)
		}
	})
}
