package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// Bounds of a page of dead letters.
const (
	usualLetters  = 50
	maxLetters    = 1000
	letterLook    = 10_000 // messages that one request looks through
	maxReasonList = 256    // bytes of a reason in a list
)

type deadLettersBody struct {
	Flow   string `json:"flow"`   // only those of the flow
	Before uint64 `json:"before"` // cursor: only those with lower sequences
	Limit  int    `json:"limit"`
	Get    uint64 `json:"get"` // the sequence of one that is wanted whole, in place of a list
}

func (b *deadLettersBody) check() error {
	if b.Limit < 0 || b.Limit > maxLetters {
		return run.Requestf(run.RequestParams, "limit: %d is not between 0 and %d", b.Limit, maxLetters)
	}
	if b.Get > 0 && (b.Flow != "" || b.Before > 0 || b.Limit > 0) {
		return run.Requestf(run.RequestParams, "get: it names one dead letter, so nothing else selects")
	}
	if b.Limit == 0 {
		b.Limit = usualLetters
	}
	return nil
}

// DeadLetter is a message that could make no run, or end no wait.
type DeadLetter struct {
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	Flow     string    `json:"flow"`
	Subject  string    `json:"subject"` // where it was published
	Code     string    `json:"code"`
	Reason   string    `json:"reason"`
	Size     int       `json:"size"`              // of the body, in bytes
	NoBody   bool      `json:"no_body,omitempty"` // the body was too large to be kept

	// Whole letters only. Bodies that are UTF-8 are in Body, others in Data.
	Headers map[string][]string `json:"headers,omitempty"`
	Body    *string             `json:"body,omitempty"`
	Data    []byte              `json:"data,omitempty"`
}

type deadLettersPage struct {
	Letters []DeadLetter `json:"deadletters"`
	Next    uint64       `json:"next,omitempty"` // cursor of those that follow
}

// deadLetters answers with dead letters, newest first, or with one of them.
func (d *desk) deadLetters(hard context.Context, m inbound) {
	var body deadLettersBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		stream, err := d.js.Stream(ctx, StreamDeadLetter)
		if err != nil {
			return d.faultOf("", err)
		}
		if body.Get > 0 {
			return d.deadLetter(ctx, stream, body.Get)
		}
		page, err := listLetters(ctx, stream, body)
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

func (d *desk) deadLetter(ctx context.Context, stream jetstream.Stream, seq uint64) answer {
	msg, err := stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return fault("", CodeUnknownDeadLetter, fmt.Sprintf("there is no dead letter %d, or not any more", seq))
	}
	if err != nil {
		return d.faultOf("", err)
	}
	letter := letterOf(msg)
	letter.Headers = map[string][]string{}
	for name, values := range ownHeaders(msg.Header) {
		if !slices.Contains([]string{HeaderReason, HeaderCode, HeaderSubject, HeaderNoBody}, name) {
			letter.Headers[name] = values
		}
	}
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
		return fault("", CodeTooLarge, err.Error())
	}
	return answer{body: rawBody(body)}
}

// listLetters reads from the end of the stream.
func listLetters(ctx context.Context, stream jetstream.Stream, of deadLettersBody) (page deadLettersPage, err error) {
	page.Letters = []DeadLetter{}
	state := stream.CachedInfo().State
	seq := state.LastSeq
	if of.Before > 0 {
		seq = min(seq, of.Before-1)
	}
	for looked := 0; seq > 0 && seq >= state.FirstSeq; seq-- {
		if looked++; looked > letterLook || len(page.Letters) == of.Limit {
			page.Next = seq + 1
			return page, nil
		}
		msg, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return page, err
		}
		letter := letterOf(msg)
		if of.Flow != "" && letter.Flow != of.Flow {
			continue
		}
		letter.Reason = strings.ToValidUTF8(letter.Reason[:min(len(letter.Reason), maxReasonList)], "")
		page.Letters = append(page.Letters, letter)
	}
	return page, nil
}

func letterOf(msg *jetstream.RawStreamMsg) DeadLetter {
	letter := DeadLetter{
		Sequence: msg.Sequence, At: msg.Time.UTC(), Flow: strings.TrimPrefix(msg.Subject, prefixDeadLetter),
		Subject: msg.Header.Get(HeaderSubject), Code: msg.Header.Get(HeaderCode), Reason: msg.Header.Get(HeaderReason),
		Size: len(msg.Data),
	}
	if size, err := strconv.Atoi(msg.Header.Get(HeaderNoBody)); err == nil {
		letter.Size, letter.NoBody = size, true
	}
	return letter
}
