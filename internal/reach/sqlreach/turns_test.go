package sqlreach_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/flowhost/flowhost/run/access"
)

// TestTurns has a flow fill a connection that it shares: the transaction of another one is the
// next.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqliteRig(t)
		r.conn.SQL.MaxOpen = 1
		began, commit, done := make(chan string, 5), make(chan struct{}), make(chan struct{})
		flows := []string{"many", "many", "many", "many", "few"}
		for _, flow := range flows {
			a := r.attemptOf(flow)
			go func() {
				a.do(t.Context(), access.KindSQLBegin, nil)
				began <- flow
				<-commit
				a.Close()
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		var order []string
		for range flows {
			order = append(order, <-began)
			commit <- struct{}{}
			<-done
		}
		if !slices.Equal(order, []string{"many", "many", "few", "many", "many"}) {
			t.Errorf("%q", order)
		}
		r.returned()
		r.pools.Close()
	})
}
