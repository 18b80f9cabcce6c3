package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// Bounds of a page of dead letters.
const (
	maxScanned      = 10_000 // messages that one request looks through
	maxListedReason = 256    // bytes of a reason in a list
)

// deadLetters answers with dead letters, newest first, or with one of them.
func (d *requests) deadLetters(hard context.Context, m inbound) {
	var body api.DeadLettersRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		stream, err := d.js.Stream(ctx, bus.StreamDeadLetter)
		if err != nil {
			return d.faultOf("", err)
		}
		if body.Get > 0 {
			return d.deadLetter(ctx, stream, body.Get)
		}
		page, err := listDeadLetters(ctx, stream, body)
		if err != nil {
			return d.faultOf("", err)
		}
		return d.shorten(len(page.Letters), func(n int) any {
			if n < len(page.Letters) {
				page.Letters = page.Letters[:n]
				page.Next = 0
				if n > 0 {
					page.Next = page.Letters[n-1].Sequence
				}
			}
			return page
		})
	})
}

func (d *requests) deadLetter(ctx context.Context, stream jetstream.Stream, seq uint64) answer {
	msg, err := getDeadLetter(ctx, stream, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return unknownDeadLetter(seq)
	}
	if err != nil {
		return d.faultOf("", err)
	}
	letter := deadLetterOf(msg)
	letter.Headers = sendersHeaders(msg.Header)
	if text := string(msg.Data); utf8.Valid(msg.Data) {
		letter.Body = &text
	} else {
		letter.Data = msg.Data
	}
	body, err := json.Marshal(letter)
	if err == nil && len(body) > d.largest() {
		err = fmt.Errorf("the dead letter has %d bytes as JSON and a message may have %d", len(body), d.largest())
	}
	if err != nil {
		return fault("", api.CodeTooLarge, err.Error())
	}
	return answer{body: rawBody(body)}
}

func unknownDeadLetter(seq uint64) answer {
	return fault("", api.CodeUnknownDeadLetter, fmt.Sprintf("there is no dead letter %d, or not any more", seq))
}

// getDeadLetter reads a message of the stream. One whose headers cannot be read is a dead
// letter nevertheless, with that as its reason: it must not hide the others.
func getDeadLetter(ctx context.Context, stream jetstream.Stream, seq uint64) (*jetstream.RawStreamMsg, error) {
	msg, err := stream.GetMsg(ctx, seq)
	if !errors.Is(err, nats.ErrBadHeaderMsg) {
		return msg, err
	}
	return &jetstream.RawStreamMsg{Sequence: seq, Header: nats.Header{
		bus.HeaderCode: {run.RequestHeader}, bus.HeaderNoBody: {"0"}, bus.HeaderReason: {"the stored message is damaged: " + err.Error()},
	}}, nil
}

// listDeadLetters reads from the end of the stream.
func listDeadLetters(ctx context.Context, stream jetstream.Stream, of api.DeadLettersRequest) (page api.DeadLettersPage, err error) {
	page.Letters = []api.DeadLetter{}
	state := stream.CachedInfo().State
	seq := state.LastSeq
	if of.Before > 0 {
		seq = min(seq, of.Before-1)
	}
	for looked := 0; seq > 0 && seq >= state.FirstSeq; seq-- {
		if looked++; looked > maxScanned || len(page.Letters) == of.Limit {
			page.Next = seq + 1
			return page, nil
		}
		msg, err := getDeadLetter(ctx, stream, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return page, err
		}
		letter := deadLetterOf(msg)
		if of.Flow != "" && letter.Flow != of.Flow {
			continue
		}
		letter.Reason = strings.ToValidUTF8(letter.Reason[:min(len(letter.Reason), maxListedReason)], "")
		page.Letters = append(page.Letters, letter)
	}
	return page, nil
}

func deadLetterOf(msg *jetstream.RawStreamMsg) api.DeadLetter {
	letter := api.DeadLetter{
		Sequence: msg.Sequence, At: msg.Time.UTC(), Flow: strings.TrimPrefix(msg.Subject, bus.PrefixDeadLetter),
		Trigger: msg.Header.Get(bus.HeaderTrigger), ForWait: msg.Header.Get(bus.HeaderForWait),
		Subject: msg.Header.Get(bus.HeaderSubject), Code: msg.Header.Get(bus.HeaderCode), Reason: msg.Header.Get(bus.HeaderReason),
		Size: len(msg.Data),
	}
	if size, err := strconv.Atoi(msg.Header.Get(bus.HeaderNoBody)); err == nil {
		letter.Size, letter.NoBody = size, true
	}
	return letter
}
