package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/flowhost/flowhost/run"
)

// maxInput bounds an input: no message that requests a run can be larger.
const maxInput = 8 << 20

// ReadJSON returns the JSON of an argument: the argument itself, @FILE or - for stdin.
func (a *App) ReadJSON(arg string) (json.RawMessage, error) {
	text, from, err := a.readArgument(arg)
	if err != nil {
		return nil, err
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

// ReadBytes returns the bytes of an argument: the argument itself, @FILE or - for stdin.
func (a *App) ReadBytes(arg string) ([]byte, error) {
	text, _, err := a.readArgument(arg)
	return text, err
}

// readArgument reads what an argument stands for, and names where that comes from.
func (a *App) readArgument(arg string) (text []byte, from string, err error) {
	text, from = []byte(arg), "the input"
	if name, isFile := strings.CutPrefix(arg, "@"); isFile {
		text, err = readFile(name)
		from = name
	} else if arg == "-" {
		text, err = ReadAll(a.Stdin)
		from = "stdin"
	}
	if err != nil {
		return nil, from, Exitf(ExitInvalid, "%w", err)
	}
	return text, from, nil
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

// checkJSON reports where text stops being JSON.
func checkJSON(text []byte) error {
	const example = `, such as {"name": "Ada"}`
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	fault, ok := err.(*json.SyntaxError)
	switch {
	case !ok:
		return err
	case len(text) == 0:
		return errors.New("it is empty; write a value" + example)
	case fault.Offset < 1 || int(fault.Offset) > len(text) || fault.Error() == "unexpected end of JSON input":
		return errors.New("it ends within a value; write a whole one" + example)
	}
	before := text[:fault.Offset-1]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	wrong, _ := utf8.DecodeRune(text[len(before):])
	return fmt.Errorf("%q at line %d, column %d, is not expected there; write a value%s", wrong, line, column, example)
}
