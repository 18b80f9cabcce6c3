package intake

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/feed"
)

// maxFollowing bounds the requests of followers that are being answered or wait.
const maxFollowing = 256

// followTime bounds the reading for a follower that does not wait.
const followTime = 5 * time.Second

// followBody is a query that can be checked.
type followBody struct{ api.FollowQuery }

func (b *followBody) Check() error { return feed.CheckQuery(&b.FollowQuery) }

// follow answers with events after a cursor.
func (d *requests) follow(hard context.Context, m inbound) {
	var body followBody
	if !d.decode(m, &body) {
		return
	}
	q := body.FollowQuery
	wait, err := waitTime(m)
	if err != nil {
		d.respond(m, fault("", api.CodeHeader, err.Error()))
		return
	}
	waiter, err := d.following.enter(m.who)
	if err != nil {
		d.respond(m, fault("", api.CodeBusy, err.Error()))
		return
	}
	defer waiter.leave()
	m.slot.leave()
	ctx, cancel := waiter.within(hard, cmp.Or(wait, followTime))
	defer cancel()
	defer context.AfterFunc(d.soft, cancel)()
	page, err := d.config.Feed.Read(ctx, q, wait > 0, d.largest())
	switch {
	case err == nil, errors.Is(ctx.Err(), context.DeadlineExceeded):
		body, err := page.Encode()
		if err != nil {
			d.log.Error("an answer cannot be encoded", "error", err)
			return
		}
		d.respond(m, answer{body: rawBody(body)})
	case errors.Is(context.Cause(ctx), errGone):
	case d.soft.Err() != nil:
		d.respond(m, fault(q.Run, api.CodeUnavailable, errStopping.Error()))
	default:
		d.respond(m, d.faultOf(q.Run, err))
	}
}
