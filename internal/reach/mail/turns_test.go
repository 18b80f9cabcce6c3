package mail_test

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/flowhost/flowhost/internal/reach/mail"
	"github.com/flowhost/flowhost/run/access"
)

// TestTurns has a flow fill a connection that it shares: the mail of another one is the next.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dials := make(chan struct{})
		client := mail.New(mail.Config{Secrets: vault{}, Dial: func(context.Context, *access.Connection, string, string) (net.Conn, error) {
			<-dials
			return nil, net.ErrClosed
		}})
		defer client.Close()
		c := &access.Connection{Name: "alerts", Type: access.TypeSMTP, Limit: access.Limit{Concurrency: 1},
			SMTP: &access.SMTPConnection{Host: "example.com", From: "flows@example.com", To: []string{"ops@example.com", "*@example.org"}}}
		policy := access.Policy{Grants: access.Grants{Connections: []string{"alerts"}}}
		served := make(chan string, 5)
		flows := []string{"many", "many", "many", "many", "few"}
		for _, flow := range flows {
			go func() {
				client.Do(t.Context(), access.Caller{Flow: flow}, policy, c, &access.Operation{Kind: access.KindMail, Head: json.RawMessage(simple)})
				served <- flow
			}()
			synctest.Wait()
		}
		var order []string
		for range flows {
			dials <- struct{}{}
			order = append(order, <-served)
		}
		if !slices.Equal(order, []string{"many", "many", "few", "many", "many"}) {
			t.Errorf("%q", order)
		}
	})
}
