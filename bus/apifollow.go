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
		d.respond(m, fault("", CodeBusy, fmt.Sprintf("%d requests follow events, which is the limit: try again later", cap(d.following))))
		return
	}
	stay, ok := d.patient(m)
	if !ok {
		<-d.following
		return
	}
	began := d.begin(func() {
		defer func() { stay.leave(); <-d.following }()
		ctx, cancel := followContext(hard, stay)
		defer cancel()
		defer context.AfterFunc(d.soft, cancel)()
		page, err := d.config.Feed.Read(ctx, q, stay.wait > 0, d.largest())
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
	})
	if !began {
		stay.leave()
		<-d.following
		d.respond(m, fault("", CodeUnavailable, errStopping.Error()))
	}
}

// followContext bounds an answer by the time that the follower waits, or by followTime.
func followContext(hard context.Context, s *stay) (context.Context, context.CancelFunc) {
	if s.wait > 0 {
		return s.within(hard)
	}
	return context.WithTimeout(hard, followTime)
}
