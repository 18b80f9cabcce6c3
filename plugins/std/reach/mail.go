package main

import (
	"github.com/flowhost/flowhost/sdk"
)

// Mail is a mail.
type Mail struct {
	Connection string   `json:"connection"` // of type smtp
	To         []string `json:"to"`
	CC         []string `json:"cc,omitempty"`
	ReplyTo    string   `json:"reply_to,omitempty"`
	Subject    string   `json:"subject"`
	Text       string   `json:"text,omitempty"`
	HTML       string   `json:"html,omitempty"` // instead of text
}

func send(ctx sdk.Context, in Mail) (struct{}, error) {
	m := sdk.Mail{To: in.To, CC: in.CC, ReplyTo: in.ReplyTo, Subject: in.Subject, Body: []byte(in.Text)}
	switch {
	case in.Text != "" && in.HTML != "":
		return struct{}{}, sdk.Fail("input", "text and html exclude each other: pass one of them")
	case in.HTML != "":
		m.ContentType, m.Body = "text/html; charset=utf-8", []byte(in.HTML)
	}
	return struct{}{}, ctx.Mail(in.Connection, m)
}
