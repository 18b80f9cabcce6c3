package bus

import (
	"context"
	"errors"
	"fmt"
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
	select {
	case d.following <- struct{}{}:
	default:
		d.respond(m.reply, fault("", CodeBusy, fmt.Sprintf("%d requests follow events, which is the limit: try again later", cap(d.following))))
		return
	}
	wait, leave, ok := d.patient(m)
	if !ok {
		<-d.following
		return
	}
	began := d.begin(func() {
		defer func() { leave(); <-d.following }()
		bound := wait
		if bound == 0 {
			bound = followTime
		}
		ctx, cancel := context.WithTimeout(hard, bound)
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
			d.respond(m.reply, answer{body: rawBody(body)})
		case d.soft.Err() != nil:
			d.respond(m.reply, fault(q.Run, CodeUnavailable, errStopping.Error()))
		default:
			d.respond(m.reply, d.faultOf(q.Run, err))
		}
	})
	if !began {
		leave()
		<-d.following
		d.respond(m.reply, fault("", CodeUnavailable, errStopping.Error()))
	}
}
