package main

import (
	"encoding/json"

	"github.com/flowhost/flowhost/sdk"
)

// Message is a message for a subject of NATS.
type Message struct {
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"data,omitempty"` // a text goes as it is, everything else as JSON
}

// bytes are what is sent.
func (m *Message) bytes() []byte {
	var text string
	if json.Unmarshal(m.Data, &text) == nil {
		return []byte(text)
	}
	return m.Data
}

func publish(ctx sdk.Context, in Message) (struct{}, error) {
	return struct{}{}, ctx.Publish(in.Subject, in.bytes())
}

// ask takes an answer that is no JSON as text.
func ask(ctx sdk.Context, in Message) (json.RawMessage, error) {
	answer, err := ctx.Request(in.Subject, in.bytes())
	if err != nil {
		return nil, err
	}
	if json.Valid(answer) {
		return answer, nil
	}
	return json.Marshal(string(answer))
}
