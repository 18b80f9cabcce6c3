package flows

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

const paramsFlow = `
flow "a" {
  param "n" {
    type = number
  }
  param "tags" {
    type    = list(string)
    default = ["x"]
  }
  param "order" {
    type    = object({ id = string, count = optional(number, 1) })
    default = null
  }
  param "size" {
    default = "m"
    validation {
      condition     = contains(["s", "m", "l"], param.size)
      error_message = "size must be s, m or l"
    }
  }
  trigger "message" "own" {
    subject = "a"
    params  = { n = trigger.payload.count, tags = [trigger.subject] }
  }
  trigger "message" "fields" {
    subject = "b"
    filter  = trigger.payload.go
  }
  trigger "message" "bad" {
    subject = "c"
    params  = trigger.payload
  }
  trigger "schedule" "tick" {
    every  = "1h"
    params = { n = length(trigger.kind) }
  }
  concurrency {
    key   = trigger.payload.key
    limit = 2
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}`

func request(trigger, payload string, params ...string) run.Request {
	r := run.Request{Trigger: run.Trigger{Kind: run.TriggerMessage, Name: trigger, Subject: "s", Payload: json.RawMessage(payload)}}
	for i := 0; i < len(params); i += 2 {
		if r.Params == nil {
			r.Params = map[string]json.RawMessage{}
		}
		r.Params[params[i]] = json.RawMessage(params[i+1])
	}
	return r
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, paramsFlow)
	for name, c := range map[string]struct {
		request run.Request
		params  string
		key     string
	}{
		"explicit":            {request("", `{"key":"k"}`, "n", "1.50"), `{"n":1.5,"order":null,"size":"m","tags":["x"]}`, "k"},
		"converted":           {request("", `{"key":1.0}`, "n", `"12345678901234567890"`, "tags", `[1,true]`), `{"n":12345678901234567890,"order":null,"size":"m","tags":["1","true"]}`, "1"},
		"optional attributes": {request("", `{"key":true}`, "n", "1", "order", `{"id":7}`), `{"n":1,"order":{"count":1,"id":"7"},"size":"m","tags":["x"]}`, "true"},
		"own params":          {request("own", `{"key":null,"count":3,"n":99}`), `{"n":3,"order":null,"size":"m","tags":["s"]}`, ""},
		"explicit over own":   {request("own", `{"key":"","count":3}`, "n", "4"), `{"n":4,"order":null,"size":"m","tags":["s"]}`, ""},
		"fields":              {request("fields", ` {"key":"k", "go":true, "n":5, "size":"l", "tags":null, "other":1}`), `{"n":5,"order":null,"size":"l","tags":["x"]}`, "k"},
	} {
		a, err := f.Admit(c.request)
		if err != nil || !a.Accepted {
			t.Errorf("%s: %+v %v", name, a, err)
			continue
		}
		params, err := json.Marshal(a.Params)
		if err != nil || string(params) != c.params || a.Concurrency != c.key {
			t.Errorf("%s: got %s key %q, want %s key %q", name, params, a.Concurrency, c.params, c.key)
		}
	}
}

func TestAdmitFilter(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, paramsFlow)
	a, err := f.Admit(request("fields", `{"go": false}`))
	if err != nil || a.Accepted {
		t.Errorf("%+v %v", a, err)
	}
}

func TestAdmitErrors(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, paramsFlow)
	for name, c := range map[string]struct {
		request       run.Request
		code, message string
	}{
		"unknown trigger":   {request("owm", `{}`), run.RequestUnknownFlow, `no trigger "owm"`},
		"not JSON":          {request("own", `{"a":`), run.RequestPayload, "not JSON"},
		"two values":        {request("own", `{} {}`), run.RequestPayload, "not JSON"},
		"filter":            {request("fields", `{}`), run.RequestExpression, `attribute named "go"`},
		"filter of nothing": {request("fields", ``), run.RequestExpression, "flow.hcl:27"},
		"filter not truth":  {request("fields", `{"go":"x"}`), run.RequestExpression, "must be true or false"},
		"unknown param":     {request("", `{}`, "m", "1", "n", "1"), run.RequestParams, "Did you mean n?"},
		"unknown in own":    {request("bad", `{"siz":1}`), run.RequestParams, "Did you mean size?"},
		"own not an object": {request("bad", `[1]`), run.RequestExpression, "params must be an object"},
		"missing":           {request("", `{}`), run.RequestParams, "param n is required: give it a value of type number"},
		"wrong type":        {request("", `{}`, "n", `"x"`), run.RequestParams, "a number is required"},
		"wrong deep":        {request("", `{}`, "n", "1", "tags", `["a",["b"]]`), run.RequestParams, "element 1: string required"},
		"wrong attribute":   {request("", `{}`, "n", "1", "order", `{"id":"x","count":{}}`), run.RequestParams, "count"},
		"param not JSON":    {request("", `{}`, "n", `1x`), run.RequestParams, "not valid JSON"},
		"validation":        {request("", `{}`, "n", `1`, "size", `"xl"`), run.RequestParams, "size must be s, m or l"},
		"key":               {request("", `{"key":{}}`, "n", "1"), run.RequestExpression, "key must be"},
	} {
		_, err := f.Admit(c.request)
		fault := (*run.RequestError)(nil)
		if !errors.As(err, &fault) || fault.Code != c.code || !strings.Contains(fault.Message, c.message) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParamParse(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, paramsFlow)
	parse := func(param, text string) string {
		got, err := f.params[param].Parse(text)
		if err != nil {
			return "error: " + err.Error()
		}
		return string(got)
	}
	for _, c := range []struct{ param, text, want string }{
		{"n", "1.50", "1.5"},
		{"tags", `["a", "b"]`, `["a","b"]`},
		{"order", `{ id = "x" }`, `{"count":1,"id":"x"}`},
		{"size", `l`, `"l"`},
		{"size", `1`, `"1"`},
		{"n", "x y", "error: param n: number is expected"},
		{"n", `"x"`, "error: param n: a number is required"},
		{"n", "[1]", "error: param n: a number is required, and this is a list"},
		{"tags", "a", `error: param tags: list(string) is expected, and "a" is not that: a is a name and not a value; strings are written in quotes`},
	} {
		if got := parse(c.param, c.text); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s=%s: %s", c.param, c.text, got)
		}
	}
}

func TestKeyAndFilterSeeLocalsOfTheTrigger(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  param "p" {
		    default = "d"
		  }
		  locals {
		    who = trigger.payload.who
		    key = "${local.who}/${param.p}"
		  }
		  trigger "message" "m" {
		    subject = "a"
		    filter  = local.who != ""
		  }
		  concurrency {
		    key = local.key
		  }
		  task "t" {
		    plugin = "./greet.wasm"
		  }
		}`)
	a, err := f.Admit(request("m", `{"who":"jo"}`))
	if err != nil || !a.Accepted || a.Concurrency != "jo/d" {
		t.Errorf("%+v %v", a, err)
	}
	if f.Concurrency.Limit != 1 {
		t.Errorf("limit %d", f.Concurrency.Limit)
	}
}
