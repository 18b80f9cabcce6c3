package main

import (
	"encoding/json"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

// Pages is a list that a server gives in pages.
type Pages struct {
	Request
	Items string `json:"items,omitempty"` // path of the list in a page, "data.orders"; default: the page is the list

	// Next is the path of what leads to the next page, "paging.next": its URL, or, with
	// Parameter, the value of that query parameter. Without Next, the header Link leads there.
	Next      string `json:"next,omitempty"`
	Parameter string `json:"parameter,omitempty"`

	MaxPages int `json:"max_pages,omitempty"` // default 100
	MaxItems int `json:"max_items,omitempty"` // default 100 000
}

// List is the items of all pages.
type List struct {
	Items     []json.RawMessage `json:"items"`
	Pages     int               `json:"pages"`
	Truncated bool              `json:"truncated"` // there are more, beyond max_pages or max_items
}

func pages(ctx sdk.Context, in Pages) (List, error) {
	if in.MaxPages <= 0 {
		in.MaxPages = 100
	}
	if in.MaxItems <= 0 {
		in.MaxItems = 100_000
	}
	out := List{Items: []json.RawMessage{}}
	first := in.URL
	for {
		r, err := in.build()
		if err != nil {
			return out, err
		}
		answer, err := ctx.Fetch(in.Connection, r)
		if err != nil {
			return out, onPage(out.Pages+1, err)
		}
		var page any
		if err := answer.JSON(&page); err != nil {
			return out, onPage(out.Pages+1, err)
		}
		out.Pages++
		items, ok := at(page, in.Items).([]any)
		if !ok {
			return out, sdk.Fail("not_a_list", "page %d has no list at %q", out.Pages, in.Items)
		}
		for _, item := range items {
			if len(out.Items) == in.MaxItems {
				out.Truncated = true
				return out, nil
			}
			text, err := json.Marshal(item)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, text)
		}
		if !in.turn(page, answer, first) {
			return out, nil
		}
		if out.Pages == in.MaxPages {
			out.Truncated = true
			return out, nil
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
	}
}

// turn makes the request that of the next page. It reports whether there is one.
func (in *Pages) turn(page any, answer *sdk.Response, first string) bool {
	if in.Next == "" {
		next := linkTo(answer.Header["Link"], "next")
		if next == "" {
			return false
		}
		in.URL, in.Query = next, nil
		return true
	}
	next, ok := scalar(at(page, in.Next))
	if !ok || next == "" || next == "false" {
		return false
	}
	if in.Parameter == "" {
		in.URL, in.Query = next, nil
		return true
	}
	query := map[string]any{in.Parameter: next}
	for name, value := range in.Query {
		if name != in.Parameter {
			query[name] = value
		}
	}
	in.URL, in.Query = first, query
	return true
}

// at is what is at a path of names in a value, nil for nothing.
func at(value any, path string) any {
	if path == "" {
		return value
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// linkTo is the URL with a relation in headers Link (RFC 8288), "" for none.
func linkTo(headers []string, relation string) string {
	for _, header := range headers {
		for link := range strings.SplitSeq(header, ",") {
			target, params, _ := strings.Cut(link, ";")
			target = strings.TrimSpace(target)
			for param := range strings.SplitSeq(params, ";") {
				name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
				if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(value, `"`), relation) &&
					strings.HasPrefix(target, "<") && strings.HasSuffix(target, ">") {
					return target[1 : len(target)-1]
				}
			}
		}
	}
	return ""
}
