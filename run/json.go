package run

import (
	"bytes"
	"encoding/json"
)

// EncodeJSON encodes v and leaves the bytes of recorded JSON in it as they are.
// json.Marshal would escape <, > and &: a retry after a restart would not see the
// input that the first attempt saw, and others not the output that a task gave.
func EncodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
