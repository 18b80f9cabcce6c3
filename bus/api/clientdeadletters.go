package api

import (
	"context"
)

// DeadLetters gives a page of dead letters, newest first: those of a flow, or of all
// for "", with sequences below before, or from the newest for 0. next is where the
// following page begins, 0 when there is none. It needs the operator's rights.
func (c *Client) DeadLetters(ctx context.Context, flow string, before uint64, limit int) (letters []DeadLetter, next uint64, err error) {
	var page DeadLettersPage
	err = c.ask(ctx, VerbDeadLetters, map[string]any{"flow": flow, "before": before, "limit": limit}, &page)
	return page.Letters, page.Next, err
}

// DeadLetter gives one with its headers and its body. It needs the operator's rights.
func (c *Client) DeadLetter(ctx context.Context, sequence uint64) (DeadLetter, error) {
	var letter DeadLetter
	err := c.ask(ctx, VerbDeadLetters, map[string]any{"get": sequence}, &letter)
	return letter, err
}
