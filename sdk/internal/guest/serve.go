package guest

import (
	"errors"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Results of an export.
const (
	statusOK     = 0
	statusFailed = 1 // the failure was given to the host
)

// Handler is a function of a plugin without its types. It returns the output as
// JSON.
type Handler func(*Call) ([]byte, error)

// Typed makes a Handler of a function with types.
func Typed[In, Out any](fn func(*Call, In) (Out, error)) Handler {
	return func(c *Call) ([]byte, error) {
		var in In
		if err := c.decode(abi.FieldInput, "input", &in); err != nil {
			return nil, err
		}
		out, err := fn(c, in)
		if err != nil {
			return nil, err
		}
		data, err := Encode(out)
		if err != nil {
			return nil, &codecError{code: codeOutput, message: "output: " + err.Error()}
		}
		return data, nil
	}
}

// Serve runs one call of fn and gives its output or its failure to the host. It
// returns what the export returns. A panic of fn is not caught.
func Serve(h Host, fn Handler) int32 {
	c := newCall(h)
	defer c.end()
	output, err := fn(c)
	if err == nil {
		err = h.Output(output)
	}
	return report(h, err)
}

func report(h Host, err error) int32 {
	if err == nil {
		return statusOK
	}
	data, encodeErr := Encode(failure(err))
	if encodeErr != nil { // details that are not JSON, from an author's own type
		data, _ = Encode(abi.Failure{Message: err.Error()})
	}
	h.Fail(data)
	return statusFailed
}

// failure is the error as the host gets it. An error that contains nothing about
// itself is worth another attempt. The message is the outermost error's, since
// wrapping adds to it.
func failure(err error) abi.Failure {
	f := abi.Failure{Retryable: true}
	var known interface{ Failure() abi.Failure }
	switch {
	case errors.Is(err, ErrOutputSize):
		f = abi.Failure{Code: codeOutputSize}
	case errors.As(err, &known):
		f = known.Failure()
	}
	f.Message = err.Error()
	return f
}
