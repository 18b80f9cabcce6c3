package hostile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const nobodyElse = "a client takes nothing from others"

// waitingFlow waits for a signal that nobody sends.
const waitingFlow = openingFlows + `
flow "waits" {
  wait "never" { signal = true }
}
`

// keepingFlow only keeps what it is given: no guest takes memory and processors.
const keepingFlow = `
flow "keeps" {
  wait "moment" { duration = "1ms" }
  output "all" { value = trigger.payload }
}
`

// clients is what somebody with the credentials for clients, or without any, may do
// to the server.
func clients() []attack {
	return []attack{
		{name: "client/waits of a day", promise: nobodyElse, flows: waitingFlow, short: true, run: func(ctx context.Context, s *stage) error { return waitsOfADay(ctx, s, 4_096) }},
		{name: "client/twenty that do not read events", promise: nobodyElse, refused: true, flows: keepingFlow, peak: 1_000,
			run: func(ctx context.Context, s *stage) error { return deaf(ctx, s, 20, "fh.v1.run.>") }},
		{name: "client/twenty that do not read answers", promise: nobodyElse, refused: true, flows: keepingFlow, peak: 1_000, run: deafToAnswers},
		{name: "client/connections", promise: nobodyElse, refused: true, flows: openingFlows, run: func(ctx context.Context, s *stage) error { return connections(ctx, s, 3_000) }},
		{name: "client/connections that say nothing", promise: nobodyElse, refused: true, flows: openingFlows, run: func(ctx context.Context, s *stage) error { return halfOpen(ctx, s, 3_000, "") }},
		{name: "client/connections that begin to speak", promise: nobodyElse, refused: true, flows: openingFlows, run: func(ctx context.Context, s *stage) error { return halfOpen(ctx, s, 3_000, "CONNECT {") }},
		{name: "client/wrong passwords", promise: nobodyElse, flows: openingFlows, short: true, run: wrongPasswords},
		{name: "client/subscriptions", promise: nobodyElse, flows: openingFlows, run: subscriptions},
		{name: "client/subscriptions come and go", promise: nobodyElse, flows: openingFlows, run: comeAndGo},
		{name: "client/large requests at once", promise: nobodyElse, refused: true, flows: keepingFlow, stop: largeStop, peak: 1_500, run: largeAtOnce},
		{name: "client/small requests", promise: nobodyElse, flows: openingFlows, run: flood},
	}
}

// largeStop is how long 50 messages of 3 MiB that come at once may stop others: all of
// them pass through the processors and to the disk before the next commit.
const largeStop = 500 * time.Millisecond

// waitsOfADay asks for results that never come and goes away.
func waitsOfADay(ctx context.Context, s *stage, n int) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	b := batchOf(nc)
	for range n {
		b.send("fh.v1.api.run.waits", "{}", nats.Header{"Fh-Wait": {"24h"}})
	}
	return errors.Join(b.err, nc.FlushWithContext(ctx))
}

// raw is a connection that speaks the protocol by hand.
type raw struct {
	net.Conn
	reader *bufio.Reader
}

func (s *stage) dial(ctx context.Context) (*raw, error) {
	at, err := s.credentials()
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(at.URL)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", target.Host)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(longAttack))
	return &raw{conn, bufio.NewReader(conn)}, nil
}

// login is a connection of a client, up to the first PONG.
func (s *stage) login(ctx context.Context) (*raw, error) {
	at, err := s.credentials()
	if err != nil {
		return nil, err
	}
	r, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(r, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"user\":%q,\"pass\":%q}\r\nPING\r\n", at.User, at.Password)
	for {
		line, err := r.reader.ReadString('\n')
		switch {
		case err != nil:
			return nil, errors.Join(err, r.Close())
		case strings.HasPrefix(line, "-ERR"):
			return nil, errors.Join(errors.New(line), r.Close())
		case strings.HasPrefix(line, "PONG"):
			return r, nil
		}
	}
}

// deaf is so many clients that subscribe to a subject and do not read, while runs
// with large results end.
func deaf(ctx context.Context, s *stage, n int, subject string) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	for range n {
		r, err := s.login(ctx)
		if err != nil {
			break // the host has as many as it takes
		}
		defer r.Close()
		fmt.Fprintf(r, "SUB %s 1\r\nPING\r\n", subject)
		if _, err := r.reader.ReadString('\n'); err != nil {
			return err
		}
	}
	b := batchOf(nc)
	body := `{"name":"` + strings.Repeat("x", 900<<10) + `"}`
	for range 60 {
		b.send("fh.v1.api.run.keeps", body, nil)
	}
	if err := b.await(ctx); err != nil {
		return err
	}
	return s.idle(ctx, "keeps")
}

// idle returns when no run of the flow is under way any more.
func (s *stage) idle(ctx context.Context, flow string) error {
	for {
		page, err := ask[struct{ Runs []ended }](ctx, s.operator, "fh.v1.api.list", fmt.Sprintf(`{"flow":%q,"states":["pending","running"],"limit":1}`, flow), nil)
		if err != nil || len(page.Runs) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * askPace):
		}
	}
}

// deafToAnswers is twenty clients that ask for the record of a large run, again and
// again, and do not read.
func deafToAnswers(ctx context.Context, s *stage) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	large, err := ask[ended](ctx, nc, "fh.v1.api.run.keeps", `"`+strings.Repeat("x", 900<<10)+`"`, nats.Header{"Fh-Wait": {"20s"}})
	if err != nil {
		return err
	}
	at, err := s.credentials()
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"run":%q}`, large.Run)
	var all sync.WaitGroup
	for range 20 {
		r, err := s.login(ctx)
		if err != nil {
			break // the host has as many as it takes
		}
		defer r.Close()
		all.Go(func() {
			fmt.Fprintf(r, "SUB %s.deaf.> 1\r\n", at.Inbox)
			for range 60 {
				fmt.Fprintf(r, "PUB fh.v1.api.get %s.deaf.x %d\r\n%s\r\n", at.Inbox, len(body), body)
			}
		})
	}
	all.Wait()
	waitFor(ctx, 5*time.Second)
	return nil
}

// largeAtOnce is eight clients who all send requests of the largest size
// and ask for the records of large runs, without waiting for answers.
func largeAtOnce(ctx context.Context, s *stage) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	large, err := ask[ended](ctx, nc, "fh.v1.api.run.keeps", `{"name":"`+strings.Repeat("x", 900<<10)+`"}`, nats.Header{"Fh-Wait": {"20s"}})
	if err != nil {
		return err
	}
	record, value := fmt.Sprintf(`{"run":%q}`, large.Run), `{"name":"`+strings.Repeat("x", 3<<20)+`"}`
	var all sync.WaitGroup
	for range 8 {
		nc, err := s.client(ctx)
		if err != nil {
			break // the host has as many as it takes
		}
		defer nc.Close()
		all.Go(func() {
			b := batchOf(nc)
			for range 2 {
				b.send("fh.v1.api.run.keeps", value, nil)
				b.send("fh.v1.trigger.keeps", value, nil)
				for range 30 {
					b.send("fh.v1.api.get", record, nil)
				}
			}
			_ = b.await(ctx) // those that are turned away are part of it
		})
	}
	all.Wait()
	return s.idle(ctx, "keeps")
}

// waitFor is how long an attacker stays.
func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// connections opens many of a client, which stay.
func connections(ctx context.Context, s *stage, n int) error {
	for range n {
		r, err := s.login(ctx)
		if err != nil {
			return nil // it is turned away, as it should be at some time
		}
		defer r.Close()
	}
	return nil
}

// halfOpen opens many connections that never finish their first line.
func halfOpen(ctx context.Context, s *stage, n int, beginning string) error {
	for range n {
		r, err := s.dial(ctx)
		if err != nil {
			return nil
		}
		defer r.Close()
		fmt.Fprint(r, beginning)
	}
	waitFor(ctx, 2*time.Second)
	return nil
}

// wrongPasswords connects with passwords that are wrong, as fast as it is refused.
func wrongPasswords(ctx context.Context, s *stage) error {
	at, err := s.credentials()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r, err := s.dial(ctx)
				if err != nil {
					return
				}
				fmt.Fprintf(r, "CONNECT {\"user\":%q,\"pass\":\"%s%d\"}\r\nPING\r\n", at.User, strings.Repeat("x", 60), i)
				for err == nil {
					_, err = r.reader.ReadString('\n')
				}
				r.Close()
			}
		})
	}
	all.Wait()
	return nil
}

// subscriptions takes 100 000 of them on one connection.
func subscriptions(ctx context.Context, s *stage) error {
	r, err := s.login(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	w := bufio.NewWriter(r)
	for i := range 100_000 {
		fmt.Fprintf(w, "SUB _INBOX.%d.%d.*.> %d\r\n", i%997, i, i+1)
	}
	return pong(w, r)
}

// pong waits until the server has read everything so far, or has hung up.
func pong(w *bufio.Writer, r *raw) error {
	fmt.Fprint(w, "PING\r\n")
	w.Flush()
	for {
		line, err := r.reader.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "PONG") {
			return nil
		}
	}
}

// comeAndGo subscribes and unsubscribes what the host's permissions allow.
func comeAndGo(ctx context.Context, s *stage) error {
	r, err := s.login(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	w := bufio.NewWriter(r)
	for i := range 100_000 {
		fmt.Fprintf(w, "SUB fh.v1.run.looks.%d.* 1\r\nUNSUB 1\r\n", i)
	}
	return pong(w, r)
}

// flood asks and does not wait for answers.
func flood(ctx context.Context, s *stage) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	b := batchOf(nc)
	for range 20_000 {
		b.send("fh.v1.api.list", `{"limit":1}`, nil)
	}
	return b.await(ctx)
}
