package cli

import (
	"testing"
)

func TestCheckJSONNamesTheLine(t *testing.T) {
	t.Parallel()
	err := checkJSON([]byte("{\n  \"a\": 1,\n  b\n}"))
	if err == nil || err.Error() != "line 3: invalid character 'b' looking for beginning of object key string" {
		t.Errorf("got %v", err)
	}
}
