package natsd_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
)

// A client that does not read is closed before it takes much memory; the engine's
// connections, by which it is sent, are not.
func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	t.Parallel()
	var log bustest.LogLines
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0", Log: log.Logger()})
	app, err := s.ConnectApp()
	if err != nil {
		t.Fatal(err)
	}
	deaf := listenDeaf(t, dir, "fh.v1.run.>")
	defer deaf.Close()
	body := []byte(strings.Repeat("x", 4<<20))
	for range 10 { // more than the bound of one and the buffers of a connection
		if err := app.Publish("fh.v1.run.f.r.finished", body); err != nil {
			t.Fatal(err)
		}
	}
	bustest.Eventually(t, "the log says that a connection was closed", func() bool {
		return strings.Contains(log.All(), "connections were closed that do not read")
	})
	if err := app.FlushTimeout(bustest.Patience); err != nil || app.Stats().Reconnects > 0 {
		t.Errorf("the engine's connection was made again %d times: %v", app.Stats().Reconnects, err)
	}
}

// listenDeaf logs in as a client, subscribes and reads no further.
func listenDeaf(t *testing.T, dir, subject string) net.Conn {
	t.Helper()
	at := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	conn, err := net.Dial("tcp", strings.TrimPrefix(at.URL, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"user\":%q,\"pass\":%q}\r\nSUB %s 1\r\nPING\r\n", at.User, at.Password, subject)
	for lines := bufio.NewReaderSize(conn, 4<<10); ; {
		line, err := lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "-ERR") {
			t.Fatalf("%q: %v", line, err)
		}
		if strings.HasPrefix(line, "PONG") {
			return conn
		}
	}
}
