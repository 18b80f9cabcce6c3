//go:build databases && linux

package sqlreach_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/internal/testkit/dbserver"
)

// Parts of the DSNs of the servers, which no text may contain.
const (
	user     = dbserver.User
	password = dbserver.Password
	database = dbserver.Database
)

// shared is a server that several tests use. It starts with the first.
type shared struct {
	start  func() (*dbserver.Server, error)
	once   sync.Once
	server *dbserver.Server
	err    error
}

var (
	postgresServer = &shared{start: dbserver.StartPostgres}
	mariaServer    = &shared{start: dbserver.StartMariaDB}
)

func (s *shared) get(t testing.TB) *dbserver.Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*shared{postgresServer, mariaServer} {
		if s.server != nil {
			s.server.Close()
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}
