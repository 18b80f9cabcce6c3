package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// waitJob is a look for the message that ends a wait.
type waitJob struct {
	wait     run.OpenWait
	messages []inbound // that came by core NATS; a stream that has the subject has them, too, in a moment
	next     uint64    // sequence of the stream to begin with, 0 for the wait's start
}

// waitResult is what a look has found.
type waitResult struct {
	wait run.OpenWait
	over bool // the wait has ended
	next uint64
}

// wakeTime is how long a stream may take to store what it was sent.
const wakeTime = time.Second

// reader looks after one wait at a time until ctx ends.
func (f *awaiting) reader(ctx, hard context.Context) {
	for {
		select {
		case job := <-f.jobs:
			result := f.lookUntilDone(ctx, hard, job)
			select {
			case f.results <- result:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			return
		}
	}
}

func (f *awaiting) lookUntilDone(ctx, hard context.Context, job waitJob) waitResult {
	p := jskit.Backoff{Log: f.log.With("run", job.wait.Run, "wait", job.wait.Wait), What: "read " + job.wait.Subject}
	for {
		over, err := f.lookFor(ctx, hard, &job)
		if err == nil {
			p.Done()
		}
		if err == nil || p.Wait(ctx, err) != nil {
			return waitResult{wait: job.wait, over: over, next: job.next}
		}
	}
}

// lookFor ends the wait with the first message that can. A stream that has the
// subject is asked, and no core message counts then.
func (f *awaiting) lookFor(ctx, hard context.Context, job *waitJob) (over bool, err error) {
	stream, err := f.streamOf(ctx, job.wait.Subject)
	if err != nil {
		return false, err
	}
	if stream != "" {
		over, err = f.lookInStream(ctx, hard, job, stream)
		if !jskit.Permanent(err) {
			return over, err
		}
		f.log.Warn("a stream cannot be read for a wait: messages end it while the host is up, no others",
			"stream", stream, "run", job.wait.Run, "wait", job.wait.Wait, "error", err)
	}
	for ; len(job.messages) > 0 && !over; job.messages = job.messages[1:] {
		if over, err = f.offer(ctx, hard, job.wait, job.messages[0], ""); err != nil {
			return false, err
		}
	}
	return over, nil
}

// streamOf is the stream that keeps messages on a subject, "" for none.
func (f *awaiting) streamOf(ctx context.Context, subject string) (string, error) {
	if err := jskit.Usable(f.app); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	stream, err := f.appJS.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", nil
	}
	return stream, err
}

func (f *awaiting) lookInStream(ctx, hard context.Context, job *waitJob, stream string) (over bool, err error) {
	consumer, err := f.waitConsumer(ctx, job, stream)
	if err != nil {
		return false, err
	}
	defer f.removeConsumer(ctx, stream, consumer)
	if consumer.CachedInfo().NumPending == 0 && len(job.messages) == 0 {
		return false, nil
	}
	for delivered := uint64(1); ; {
		pull, cancel := context.WithTimeout(ctx, wakeTime)
		m, err := consumer.Next(jetstream.FetchContext(pull))
		cancel()
		if err != nil && ctx.Err() == nil && (errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		meta := jskit.Metadata(m, stream, consumer)
		if meta == nil {
			continue
		}
		if meta.Sequence.Consumer != delivered {
			return false, jskit.ErrGap
		}
		delivered++
		id := fmt.Sprintf("wait/%s/%s/%d", job.wait.Run, job.wait.Wait, meta.Sequence.Stream)
		over, err := f.offer(ctx, hard, job.wait, inbound{subject: m.Subject(), header: m.Headers(), data: m.Data()}, id)
		if over || err != nil {
			return over, err
		}
		job.next = meta.Sequence.Stream + 1
	}
}

func (f *awaiting) waitConsumer(ctx context.Context, job *waitJob, stream string) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		FilterSubject: job.wait.Subject, AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: job.next,
		InactiveThreshold: jskit.ConsumerIdle, MemoryStorage: true, Replicas: 1,
	}
	if job.next == 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, 0, &job.wait.Since
	}
	consumer, err := f.appJS.CreateConsumer(ctx, stream, cfg)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream, err)
	}
	return consumer, nil
}

// removeConsumer leaves it to an unreachable server to do so by itself, later.
func (f *awaiting) removeConsumer(ctx context.Context, stream string, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = f.appJS.DeleteConsumer(ctx, stream, consumer.CachedInfo().Name)
}

// offer gives a message to a wait, as often as it takes, and reports whether the wait
// is over: ended by it, or before. One that the wait cannot take becomes a dead
// letter, and the wait continues.
func (f *awaiting) offer(ctx, hard context.Context, w run.OpenWait, m inbound, id string) (over bool, err error) {
	p := jskit.Backoff{Log: f.log.With("run", w.Run, "wait", w.Wait), What: "end a wait"}
	for {
		err := f.config.Waits.Signal(hard, w.Run, w.Wait, json.RawMessage(m.data))
		var wrong *run.RequestError
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &wrong):
			why := run.Requestf(wrong.Code, "wait %q of run %s: %s", w.Wait, w.Run, wrong.Message)
			return false, f.storeDeadLetter(ctx, deadLetter{flow: w.Flow, forWait: string(w.Run) + "/" + w.Wait, inbound: m, why: why, id: id})
		}
		if code := f.codeOf(err); code != api.CodeUnavailable && code != api.CodeBusy {
			return true, nil // it has ended
		}
		if err := p.Wait(ctx, err); err != nil {
			return false, err
		}
	}
}
