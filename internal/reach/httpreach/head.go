package httpreach

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/internal/jsonscan"
	"github.com/flowhost/flowhost/run/access"
)

// maxHead bounds the JSON of an operation's head: headers at their bounds, and escapes.
const maxHead = 512 << 10

// nameCharacters are those of the names of connections.
const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// head is what a guest asks for.
type head struct {
	Connection string
	Method     string
	URL        string
	Headers    map[string][]string
	Idempotent bool   // a key was asked for
	Key        string // the guest's own; "": one is made
	Timeout    time.Duration
	Redirects  *int // nil: as many as granted
}

// answerHead is what a guest gets beside the body.
type answerHead struct {
	Status  int                 `json:"status"`
	Headers map[string][]string `json:"headers"`
	URL     string              `json:"url"`
}

// parseHead takes the members by their exact names, unlike encoding/json, so that no other
// reader of a head finds another connection in it.
func parseHead(op *access.Operation) (*head, error) {
	if op.Kind != access.KindHTTP {
		return nil, invalid("an operation of kind %s is not an HTTP request", strconv.QuoteToASCII(op.Kind))
	}
	if len(op.Head) > maxHead {
		return nil, invalid("the head of the request is longer than %d bytes", maxHead)
	}
	if len(op.Body) > access.MaxBody {
		return nil, tooLarge("the request", "its body has more than "+strconv.Itoa(access.MaxBody)+" bytes")
	}
	h := &head{Method: "GET"}
	var wrong error
	err := jsonscan.Members(op.Head, func(name string, value []byte) error {
		wrong = h.set(name, value)
		return wrong
	})
	switch {
	case wrong != nil:
		return nil, wrong
	case err != nil:
		return nil, invalid(`the head of the request is not a JSON object: write {"method":"GET","url":"https://example.com/"}`)
	}
	if err := httprule.CheckMethod(h.Method); err != nil {
		return nil, invalid("the request is wrong: %v", err)
	}
	if strings.Trim(h.Connection, nameCharacters) != "" || len(h.Connection) > 128 {
		return nil, invalid("the request's connection %s is not a name", quoted(h.Connection))
	}
	if h.URL == "" {
		return nil, invalid("the request has no url")
	}
	return h, nil
}

func (h *head) set(name string, value []byte) error {
	switch name {
	case "connection":
		return member(name, value, "a string", &h.Connection)
	case "method":
		return member(name, value, "a string", &h.Method)
	case "url":
		return member(name, value, "a string", &h.URL)
	case "headers":
		h.Headers = nil // of a member of the same name: the last one counts
		return member(name, value, "an object of lists of strings", &h.Headers)
	case "redirects":
		if err := member(name, value, "an integer from 0", &h.Redirects); err != nil {
			return err
		}
		if h.Redirects != nil && *h.Redirects < 0 {
			return invalid("the request's redirects is not an integer from 0")
		}
		return nil
	case "timeout_ms":
		var ms int64
		if err := member(name, value, "an integer from 1", &ms); err != nil {
			return err
		}
		if ms < 1 {
			return invalid("the request's timeout_ms is not an integer from 1")
		}
		h.Timeout = time.Duration(min(ms, maxTime.Milliseconds())) * time.Millisecond
		return nil
	case "idempotency_key":
		return h.setKey(value)
	}
	return invalid("the request has the unknown member %s: it may have connection, method, url, headers, idempotency_key, timeout_ms and redirects", quoted(name))
}

func (h *head) setKey(value []byte) error {
	h.Key, h.Idempotent = "", false
	if !bytes.HasPrefix(value, []byte(`"`)) {
		return member("idempotency_key", value, "true or a string", &h.Idempotent)
	}
	if err := member("idempotency_key", value, "true or a string", &h.Key); err != nil {
		return err
	}
	if h.Key == "" {
		return invalid("the request's idempotency_key is empty: write true for one that the host makes")
	}
	h.Idempotent = true
	return nil
}

func member(name string, value []byte, what string, to any) error {
	if err := jsonscan.Decode(value, to); err != nil {
		return invalid("the request's %s is not %s", name, what)
	}
	return nil
}

// quoted shows a bounded part of what a guest wrote.
func quoted(text string) string { return strconv.QuoteToASCII(text[:min(len(text), 100)]) }
