package bustest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

type Credentials struct {
	URL, User, Password string
	Inbox               string `json:"inbox_prefix"`
}

func ReadCredentials(t *testing.T, dir, file string) Credentials {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	var c Credentials
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Dial connects over the network as other programs do.
func Dial(t *testing.T, c Credentials, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(c.URL, append(opts, nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix(c.Inbox), nats.NoReconnect())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// Refusal reports whether the server refuses what do does. Its answer comes before
// the one to a flush.
func Refusal(t *testing.T, nc *nats.Conn, do func() error) bool {
	t.Helper()
	refused := make(chan bool, 1)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			select {
			case refused <- true:
			default:
			}
		}
	})
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// The handler runs on a goroutine of the connection: an unrelated refusal that
	// comes after is the sign that the first one would have been handled.
	if len(refused) == 0 {
		barrier := make(chan struct{})
		handler := nc.ErrorHandler()
		nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
			if strings.Contains(err.Error(), "barrier.barrier") {
				close(barrier)
				return
			}
			handler(nc, sub, err)
		})
		if err := nc.Publish("barrier.barrier", nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-barrier:
		case <-time.After(Patience):
			t.Fatal("the server does not refuse the barrier")
		}
	}
	return len(refused) == 1
}
