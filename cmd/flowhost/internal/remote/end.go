package remote

import (
	"context"
	"errors"
	"time"

	"github.com/flowhost/flowhost/bus/api"
)

// goneTime is the time between two looks whether a host has gone. After the second that
// finds nobody it has: an embedded server that is restarted is away for a shorter time.
const goneTime = 250 * time.Millisecond

// IsStopping reports whether a host has refused a request because it shuts down.
func IsStopping(err error) bool {
	var answer *api.AnswerError
	return errors.As(err, &answer) && answer.Code == api.CodeUnavailable
}

// AwaitEnd waits until a host that shuts down has gone: its server does not answer any more,
// nobody answers on an external one, or another host does.
func (r *Host) AwaitEnd(ctx context.Context, client *api.Client, draining api.HostStatus) error {
	for missed := 0; ; {
		status, err := client.Status(ctx)
		unreachable := (*api.UnreachableError)(nil)
		switch {
		case err == nil && !status.Started.Equal(draining.Started):
			return nil
		case errors.As(err, &unreachable):
			if missed++; missed > 1 {
				return nil
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !IsStopping(err):
			return err
		default:
			missed = 0
		}
		if err := Sleep(ctx, goneTime); err != nil {
			return err
		}
	}
}
