package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// maxInput bounds an input: no message that requests a run can be larger.
const maxInput = 8 << 20

// ReadJSON returns the JSON of an argument: the argument itself, @FILE or - for stdin.
func (a *App) ReadJSON(arg string) (json.RawMessage, error) {
	text, from := []byte(arg), "the input"
	var err error
	if name, isFile := strings.CutPrefix(arg, "@"); isFile {
		text, err = readFile(name)
		from = name
	} else if arg == "-" {
		text, err = ReadAll(a.Stdin)
		from = "stdin"
	}
	if err != nil {
		return nil, Exitf(ExitInvalid, "%w", err)
	}
	text = bytes.TrimSpace(text)
	if err := checkJSON(text); err != nil {
		return nil, Exitf(ExitInvalid, "%s is not JSON: %w", from, err)
	}
	if err := run.CheckPayload(text); err != nil {
		return nil, Exitf(ExitInvalid, "%s is not accepted: %w", from, err)
	}
	return text, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f)
}

// ReadAll reads an input, up to maxInput bytes.
func ReadAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(text) > maxInput {
		err = fmt.Errorf("the input is larger than %d bytes", maxInput)
	}
	return text, err
}

// checkJSON adds the line to the error of invalid JSON.
func checkJSON(text []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	if syntax, ok := err.(*json.SyntaxError); ok {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}
