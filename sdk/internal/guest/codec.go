package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Codes of failures that this package makes, beside "input" and "config".
const (
	codeOutput     = "output"      // the output cannot be encoded
	codeOutputSize = "output_size" // the output is over its limit
	codeFunction   = "function"    // the plugin has no such function
)

// codecError is a failure at the border that another attempt would repeat.
type codecError struct{ code, message string }

func (e *codecError) Error() string { return e.message }

// Failure is the error as the host gets it.
func (e *codecError) Failure() abi.Failure {
	return abi.Failure{Code: e.code, Message: e.message}
}

// Encode makes the JSON of v. It leaves <, > and & as they are: the bytes are
// for programs, not for HTML.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// explain names the field of the document that does not fit, and why, in the
// words of JSON.
func explain(name string, err error) string {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return name + ": " + err.Error()
	}
	path := name
	if mismatch.Field != "" {
		path += "." + mismatch.Field
	}
	return fmt.Sprintf("%s: %s is expected, not %s", path, kind(mismatch.Type), mismatch.Value)
}

func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Bool:
		return "a bool"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr {
		return "an integer (" + t.Kind().String() + ")"
	}
	return t.String()
}
