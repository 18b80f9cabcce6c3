package flows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/lang"
)

// surroundings are files in which a line may be put into each body.
var surroundings = map[string]string{
	"variable":           "variable \"v\" {\n%s}\n" + smallFlow("f"),
	"validation":         "variable \"v\" {\n  default = 1\n  validation {\n%s  }\n}\n" + smallFlow("f"),
	"plugin":             "plugin \"p\" {\n%s}\n" + smallFlow("f"),
	"grant":              "plugin \"p\" {\n  source = \"./greet.wasm\"\n  grant {\n%s  }\n}\n" + smallFlow("f"),
	"http":               "plugin \"p\" {\n  source = \"./greet.wasm\"\n  grant {\n    http {\n%s    }\n  }\n}\n" + smallFlow("f"),
	"secret":             "secret \"s\" {\n%s}\n" + smallFlow("f"),
	"connection":         "connection \"c\" {\n%s}\n" + smallFlow("f"),
	"auth":               inConnection("auth {\n%s  }"),
	"basic":              inConnection("auth {\n basic {\n%s  }\n}"),
	"header":             inConnection("auth {\n header {\n%s  }\n}"),
	"query":              inConnection("auth {\n query {\n%s  }\n}"),
	"oauth2":             inConnection("auth {\n oauth2 {\n%s  }\n}"),
	"aws_sigv4":          inConnection("auth {\n aws_sigv4 {\n%s  }\n}"),
	"connection's retry": inConnection("retry {\n%s  }"),
	"connection's limit": inConnection("limit {\n%s  }"),
	"tls":                inConnection("tls {\n%s  }"),
	"limits":             "plugin \"p\" {\n  source = \"./greet.wasm\"\n  limits {\n%s  }\n}\n" + smallFlow("f"),
	"limit":              "limit \"l\" {\n%s}\n" + smallFlow("f"),
	"defaults":           "defaults {\n%s}\n" + smallFlow("f"),
	"retry":              "defaults {\n  retry {\n%s  }\n}\n" + smallFlow("f"),
	"flow":               "flow \"f\" {\n%s  task \"t\" {\n    plugin = \"./greet.wasm\"\n  }\n}\n",
	"schedule trigger":   inFlow("trigger \"schedule\" \"s\" {\n%s}"),
	"message trigger":    inFlow("trigger \"message\" \"m\" {\n%s}"),
	"flow trigger":       inFlow("trigger \"flow\" \"a\" {\n%s}"),
	"concurrency":        inFlow("concurrency {\n%s}"),
	"finally":            inFlow("finally {\n%s}"),
	"task":               inFlow("task \"u\" {\n%s}"),
	"group":              inFlow("group \"g\" {\n%s  task \"u\" {\n    plugin = \"./greet.wasm\"\n  }\n}"),
	"wait":               inFlow("wait \"w\" {\n%s}"),
	"output":             inFlow("output \"o\" {\n%s}"),
}

func inConnection(block string) string {
	return "connection \"c\" {\n  type = \"http\"\n  base_url = \"https://example.com\"\n  allow = [\"GET /x\"]\n  " + block + "\n}\n" + smallFlow("f")
}

func inFlow(block string) string {
	return "flow \"f\" {\n" + block + "\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n  }\n}\n"
}

// beside are arguments without which another says nothing.
var beside = map[string]string{
	"schedule trigger day_match": `cron = "@daily"`,
	"schedule trigger offset":    `every = "1h"`,
}

// about gives the diagnostics of a file on the argument that was put into a body.
func about(t *testing.T, body, name, value string) []string {
	t.Helper()
	around, ok := surroundings[body]
	if !ok {
		t.Fatalf("%s: no file is known into which its arguments can be put: add it to surroundings", body)
	}
	before, _, _ := strings.Cut(around, "%s")
	at := strings.Count(before, "\n") + 1
	_, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": fmt.Sprintf(around, name+" = "+value+"\n"+beside[body+" "+name]+"\n")})}, Options{Catalog: modules})
	var found []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError && d.Subject.Start.Line == at {
			found = append(found, string(RuleOf(d))+" "+d.Detail)
		}
	}
	return found
}

// present are the arguments of this version, by the name of their body.
func present(yield func(body string, a lang.Argument) bool) {
	for _, w := range tables(fileSchema) {
		for _, a := range w.Arguments {
			if !a.Later && !yield(idOf(w), a) {
				return
			}
		}
	}
}

func TestEveryWordIsDescribed(t *testing.T) {
	t.Parallel()
	for body, a := range present {
		if !slices.Contains(lang.Kinds, a.Kind) || lang.Phases[a.Phase] == "" || !isLine(a.About) {
			t.Errorf("%s: %s needs a kind, a phase and what it is about: %+v", body, a.Name, a)
		}
		if a.Required && a.Default != "" {
			t.Errorf("%s: %s is required and has a default", body, a.Name)
		}
		if len(a.OneOf) > 0 && a.Kind != lang.String && a.Kind != lang.Strings || a.Bounds != "" && a.Kind != lang.Integer && a.Kind != lang.Number && a.Kind != lang.Size {
			t.Errorf("%s: %s: only texts are one of a few, only numbers and sizes have bounds", body, a.Name)
		}
	}
	seen := map[string]bool{}
	for _, w := range tables(fileSchema) {
		if id := idOf(w); seen[id] || id == "" {
			t.Errorf("two bodies are called %q", id)
		}
		seen[idOf(w)] = true
		for _, b := range w.Blocks {
			if !b.Later && !isLine(b.About) {
				t.Errorf("%s: the block %s needs what it is about", idOf(w), b.Name)
			}
		}
	}
}

// isLine holds that a description fits into a line of a table.
func isLine(s string) bool {
	return s != "" && len(s) <= 80 && !strings.ContainsAny(s, "\n|") && !strings.HasSuffix(s, ".")
}

// unfit are values that no argument of a kind takes.
var unfit = map[lang.Kind]string{
	lang.String: "[1]", lang.Bool: "[1]", lang.Number: `"x"`, lang.Integer: "1.5", lang.Duration: "5", lang.Size: `"x"`, lang.Time: `"x"`, lang.Scalar: "[1]",
	lang.Secret: `"x"`, lang.SecretText: "[1]", lang.SecretTexts: `"x"`, lang.Secrets: `"x"`, lang.Connections: `"x"`,
	lang.Object: `"x"`, lang.StringMap: "[1]", lang.Type: "1 + 1", lang.Plugin: "[1]", lang.Flow: "[1]", lang.Tasks: "1", lang.Items: "1", lang.Limits: "1", lang.Strings: `"x"`,
}

// TestKindsAreThoseOfTheDecoder writes values that an argument's kind excludes.
func TestKindsAreThoseOfTheDecoder(t *testing.T) {
	t.Parallel()
	for body, a := range present {
		wrong, ok := unfit[a.Kind]
		if !ok || body == "validation" || (body == "task" && a.Name == "config") {
			continue // any value; a condition of a value; laid over the plugin's when the task starts
		}
		if found := about(t, body, a.Name, wrong); len(found) == 0 {
			t.Errorf("%s: %s is of kind %q, and %s = %s is accepted", body, a.Name, a.Kind, a.Name, wrong)
		}
	}
}

// written writes one of the strings that an argument may be.
func written(a lang.Argument, text string) string {
	if a.Kind == lang.Strings {
		return "[" + strconv.Quote(text) + "]"
	}
	return strconv.Quote(text)
}

// TestBoundsAreThoseOfTheDecoder writes values out of an argument's bounds, and
// texts that it cannot be.
func TestBoundsAreThoseOfTheDecoder(t *testing.T) {
	t.Parallel()
	for body, a := range present {
		if a.Kind == lang.Integer || a.Kind == lang.Number {
			found := strings.Join(about(t, body, a.Name, "-1000000"), "\n")
			if a.Bounds == "" || !strings.Contains(found, a.Bounds) {
				t.Errorf("%s: %s has the bounds %q, and -1000000 gives %q", body, a.Name, a.Bounds, found)
			}
		}
		for _, word := range a.OneOf {
			if found := strings.Join(about(t, body, a.Name, written(a, word)), "\n"); strings.Contains(found, string(RuleValue)) {
				t.Errorf("%s: %s = %q: %s", body, a.Name, word, found)
			}
		}
		if len(a.OneOf) > 0 {
			if found := strings.Join(about(t, body, a.Name, written(a, "no such word")), "\n"); !strings.Contains(found, string(RuleValue)) {
				t.Errorf("%s: %s accepts any text", body, a.Name)
			}
		}
	}
}

// TestDefaultsAreValues writes defaults out where they are values.
func TestDefaultsAreValues(t *testing.T) {
	t.Parallel()
	written := 0
	for body, a := range present {
		var v any
		if json.Unmarshal([]byte(a.Default), &v) != nil {
			continue // a few words
		}
		written++
		for _, found := range about(t, body, a.Name, a.Default) {
			if strings.HasPrefix(found, string(RuleValue)+" ") || strings.HasPrefix(found, string(RuleType)+" ") {
				t.Errorf("%s: %s = %s: %s", body, a.Name, a.Default, found)
			}
		}
	}
	if written < 20 {
		t.Errorf("%d defaults are values", written)
	}
}

// TestSchema holds the form of what is printed for programs.
func TestSchema(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"format_version":"1.0","file":"flow file","bodies":[{"name":"flow file","arguments":[],"blocks":[{"name":"variable","labels":["name"],"body":"variable","about":"`,
		`{"name":"retries","type":"whole number","bounds":"from 0 to 99999","phase":"load","required":false,"default":"0","about":"further attempts after the first"}`,
		`{"name":"run_on","type":"text","one_of":["success","failure","always"],"phase":"load","required":false,"default":"\"success\"","about":"`,
		`{"name":"retry","body":"retry","once":true,"about":"`,
		`"kinds":[{"label":"`,
		`{"label":"schedule","body":"schedule trigger"}`,
		`"load":["var","local","flow"]`,
		`"run":["var","local","flow","param","trigger","run","task","wait","group"]`,
	} {
		if !strings.Contains(string(encoded), part) {
			t.Errorf("no %s", part)
		}
	}
	bodies := map[string]bool{}
	for _, b := range Schema().Bodies {
		bodies[b.Name] = true
	}
	for _, b := range Schema().Bodies {
		for _, inner := range b.Blocks {
			for _, name := range append([]string{inner.Body}, kindBodies(inner)...) {
				if name != "" && !bodies[name] {
					t.Errorf("%s: the block %s has the body %q, which is not listed", b.Name, inner.Name, name)
				}
			}
		}
	}
}

func kindBodies(b Block) []string {
	var names []string
	for _, k := range b.Kinds {
		names = append(names, k.Body)
	}
	return names
}
