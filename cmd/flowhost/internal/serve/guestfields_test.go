package serve

import (
	"encoding/json"
	"testing"
)

func TestGuestFields(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"b":2,"a":"x","c":{"d":[1]}}`: `guest=[a=x b=2 c={"d":[1]}]`,
		``:                              `=<nil>`,
		`{`:                             `=<nil>`,
	} {
		if got := guestFields(json.RawMessage(object)).String(); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}
