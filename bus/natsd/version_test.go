package natsd

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The form of the server's files is private to it. With another version, compare
// writeMsgRecordLocked and recoverFullState in its server/filestore.go with blocks.go and
// streamindex.go, and raise the version here.
func TestFilesAreThoseOfThisServer(t *testing.T) {
	t.Parallel()
	if server.VERSION != "2.15.2" {
		t.Errorf("nats-server is %s: its files are known as version 2.15.2 writes them", server.VERSION)
	}
}
