package api

import (
	"context"

	"github.com/flowhost/flowhost/run"
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

// SendDeadLetter starts the run that a dead letter could not start, and removes the dead
// letter then. Sent again within a day it gives the same run. What still cannot start a
// run stays: an error has the reason, and a receipt without a run is that of a message
// that the trigger's filter or the flow's concurrency rejects. It needs the operator's
// rights.
func (c *Client) SendDeadLetter(ctx context.Context, sequence uint64) (run.Receipt, error) {
	var answer ReceiptAnswer
	err := c.ask(ctx, VerbSendDeadLetter, DeadLetterRequest{Sequence: sequence}, &answer)
	return answer.receipt(), err
}

// DiscardDeadLetter removes a dead letter for good. It needs the operator's rights.
func (c *Client) DiscardDeadLetter(ctx context.Context, sequence uint64) error {
	return c.ask(ctx, VerbDiscardDeadLetter, DeadLetterRequest{Sequence: sequence}, &Discarded{})
}
