package cli

import (
	"testing"
)

func TestCheckJSONNamesThePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n  \"a\": 1,\n  b\n}": `'b' at line 3, column 3, is not expected there; write a value, such as {"name": "Ada"}`,
		"{} x":                   `'x' at line 1, column 4, is not expected there; write a value, such as {"name": "Ada"}`,
		"{\"a\":":                `it ends within a value; write a whole one, such as {"name": "Ada"}`,
		"":                       `it is empty; write a value, such as {"name": "Ada"}`,
		"{\"a\": \"\x01\"}":      `'\x01' at line 1, column 8, is not expected there; write a value, such as {"name": "Ada"}`,
	} {
		if err := checkJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := checkJSON([]byte(`{"a": 1}`)); err != nil {
		t.Error(err)
	}
}
