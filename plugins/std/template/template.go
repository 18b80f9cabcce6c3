package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	html "html/template"
	"io"
	"strings"
	text "text/template"

	"github.com/flowhost/flowhost/sdk"
)

// Template is a template of Go, and its data.
type Template struct {
	Template string `json:"template"` // {{.name}}, {{range .items}}…{{end}}
	Data     any    `json:"data,omitempty"`
	HTML     bool   `json:"html,omitempty"` // data is escaped as its place in HTML needs
}

// Text is a text.
type Text struct {
	Text string `json:"text"`
}

// helpers are functions of templates, beside those of Go.
var helpers = map[string]any{
	"json": func(value any) (string, error) {
		out, err := json.Marshal(value)
		return string(out), err
	},
	"upper": strings.ToUpper, "lower": strings.ToLower, "trim": strings.TrimSpace,
	"join": func(separator string, values []any) string {
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprint(v)
		}
		return strings.Join(texts, separator)
	},
}

// missing makes a field that does not exist a failure: a letter with "<no value>" helps nobody.
const missing = "missingkey=error"

func render(_ sdk.Context, in Template) (Text, error) {
	var executed interface{ Execute(io.Writer, any) error }
	var err error
	if in.HTML {
		executed, err = html.New("template").Funcs(helpers).Option(missing).Parse(in.Template)
	} else {
		executed, err = text.New("template").Funcs(helpers).Option(missing).Parse(in.Template)
	}
	if err != nil {
		return Text{}, sdk.Fail("syntax", "%w", err)
	}
	var out bytes.Buffer
	if err := executed.Execute(&out, in.Data); err != nil {
		return Text{}, sdk.Fail("template", "%w", err)
	}
	return Text{out.String()}, nil
}
