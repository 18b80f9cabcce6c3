package main

import (
	"encoding/json"

	"github.com/flowhost/flowhost/sdk"
)

// Hook is where a webhook is.
type Hook struct {
	Connection string `json:"connection,omitempty"` // whose base URL may be the whole webhook
	URL        string `json:"url,omitempty"`        // default "/" for a connection
}

// Post is JSON for a webhook.
type Post struct {
	Hook
	JSON json.RawMessage `json:"json"`
}

func post(ctx sdk.Context, in Post) (struct{}, error) {
	return struct{}{}, in.post(ctx, in.JSON)
}

func (h *Hook) post(ctx sdk.Context, body []byte) error {
	if h.URL == "" {
		if h.Connection == "" {
			return sdk.Fail("input", "a webhook needs a connection or a url")
		}
		h.URL = "/"
	}
	answer, err := ctx.Fetch(h.Connection, sdk.Request{
		Method: "POST", URL: h.URL, Header: sdk.Header{"Content-Type": {"application/json"}}, Body: body, Idempotent: true,
	})
	if err != nil {
		return err
	}
	return answer.OK()
}

// Chat is a text for a chat.
type Chat struct {
	Hook
	Text   string          `json:"text"`
	Blocks json.RawMessage `json:"blocks,omitempty"` // of Slack's Block Kit, beside the text
}

func slack(ctx sdk.Context, in Chat) (struct{}, error) {
	body, err := json.Marshal(struct {
		Text   string          `json:"text"`
		Blocks json.RawMessage `json:"blocks,omitempty"`
	}{in.Text, in.Blocks})
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, in.post(ctx, body)
}
