package httpreach_test

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

// stopped is a resolver that answers each lookup once it is let.
type stopped chan struct{}

func (s stopped) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	<-s
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// TestTurns has a flow fill a connection that it shares: the operation of another one is the
// next.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lookups := make(stopped)
		client, err := httpreach.New(httpreach.Config{Secrets: vault{}, Resolver: lookups})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		c := &access.Connection{Name: "api", Type: access.TypeHTTP, Limit: access.Limit{Concurrency: 1},
			HTTP: &access.HTTPConnection{BaseURL: "https://api.example.com", Allow: []string{"GET /**"}}}
		policy := access.Policy{Grants: access.Grants{Connections: []string{"api"}}}
		head, err := json.Marshal(fields{"connection": "api", "url": "/"})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan string, 5)
		flows := []string{"many", "many", "many", "many", "few"}
		for _, flow := range flows {
			go func() {
				client.Do(t.Context(), access.Caller{Flow: flow}, policy, c, &access.Operation{Kind: access.KindHTTP, Head: head})
				served <- flow
			}()
			synctest.Wait()
		}
		var order []string
		for range flows {
			lookups <- struct{}{}
			order = append(order, <-served)
		}
		if !slices.Equal(order, []string{"many", "many", "few", "many", "many"}) {
			t.Errorf("%q", order)
		}
	})
}
