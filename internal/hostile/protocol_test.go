package hostile

import (
	"context"
	"fmt"
	"strings"
)

// protocol is connections that send what no client library does, before and after
// they have said who they are.
func protocol() []attack {
	long := strings.Repeat("x", 16<<20)
	lines := map[string]string{
		"garbage":             "\x00\xff\x01GET / HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat("\x80", 4<<20),
		"no line end":         long,
		"long subject":        "PUB " + long + " 0\r\n\r\n",
		"many tokens":         "SUB " + strings.Repeat("a.", 2_000) + "a 1\r\n",
		"huge size":           "PUB fh.v1.trigger.looks 99999999999999999999\r\n" + long,
		"larger than allowed": fmt.Sprintf("PUB fh.v1.trigger.looks %d\r\n%s", 9<<20, long),
		"negative size":       "PUB fh.v1.trigger.looks -1\r\n\r\n",
		"headers overlap":     "HPUB fh.v1.trigger.looks 100 10\r\nNATS/1.0\r\n\r\n",
		"headers without end": "HPUB fh.v1.trigger.looks 1048576 1048576\r\nNATS/1.0\r\n" + long[:1<<20],
		"connects again":      strings.Repeat("CONNECT {\"user\":\"x\",\"pass\":\"y\"}\r\n", 10_000),
		"deep connect":        "CONNECT " + strings.Repeat("{\"a\":", 100_000) + "\r\n",
		"pings":               strings.Repeat("PING\r\n", 1_000_000),
		"routes":              "INFO {\"server_id\":\"x\"}\r\nRS+ $G a\r\nRMSG $G a 1\r\nx\r\nLS+ a\r\n",
	}
	var all []attack
	for name, text := range lines {
		for _, known := range []bool{false, true} {
			who := map[bool]string{false: "a stranger's ", true: "a client's "}[known]
			all = append(all, attack{
				name: "protocol/" + who + name, promise: nobodyElse, flows: openingFlows, short: known && name == "headers without end",
				run: func(ctx context.Context, s *stage) error { return speaks(ctx, s, known, text) },
			})
		}
	}
	return all
}

// speaks opens a few connections that send a text and read what comes until the
// server hangs up, or for a while.
func speaks(ctx context.Context, s *stage, known bool, text string) error {
	for range 5 {
		open := s.dial
		if known {
			open = s.login
		}
		r, err := open(ctx)
		if err != nil {
			return err
		}
		defer r.Close()
		written := make(chan struct{})
		go func() {
			defer close(written)
			r.Write([]byte(text)) // the server may hang up
		}()
		if strings.HasSuffix(text, "\n") {
			<-written
		}
		waitFor(ctx, beforehand*askPace)
		r.Close()
		<-written
	}
	return nil
}
