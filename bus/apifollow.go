package bus

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// maxFollowing bounds the requests of followers that are being answered or wait.
const maxFollowing = 256

// followTime bounds the reading for a follower that does not wait.
const followTime = 5 * time.Second

// follow answers with events after a cursor.
func (d *desk) follow(hard context.Context, m inbound) {
	var q FollowQuery
	if !d.understood(m, &q) {
		return
	}
	wait, err := waitTime(m)
	if err != nil {
		d.respond(m, fault("", CodeHeader, err.Error()))
		return
	}
	stay, err := d.following.enter(m.who)
	if err != nil {
		d.respond(m, fault("", CodeBusy, err.Error()))
		return
	}
	defer stay.leave()
	m.seat.leave()
	ctx, cancel := stay.within(hard, cmp.Or(wait, followTime))
	defer cancel()
	defer context.AfterFunc(d.soft, cancel)()
	page, err := d.config.Feed.Read(ctx, q, wait > 0, d.largest())
	switch {
	case err == nil, errors.Is(ctx.Err(), context.DeadlineExceeded):
		body, err := page.encode()
		if err != nil {
			d.log.Error("an answer cannot be encoded", "error", err)
			return
		}
		d.respond(m, answer{body: rawBody(body)})
	case errors.Is(context.Cause(ctx), errGone):
	case d.soft.Err() != nil:
		d.respond(m, fault(q.Run, CodeUnavailable, errStopping.Error()))
	default:
		d.respond(m, d.faultOf(q.Run, err))
	}
}
