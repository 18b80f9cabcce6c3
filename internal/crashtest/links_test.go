package crashtest

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers with what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func TestLinks(t *testing.T) {
	t.Parallel()
	l, err := newLinks([]string{echo(t), echo(t), echo(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	dial := func(from, to int) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.links[[2]int{from, to}].listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	answers := func(c net.Conn, within time.Duration) error {
		c.SetDeadline(time.Now().Add(within))
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err := c.Read(make([]byte, 1))
		return err
	}
	dead := func(c net.Conn) {
		t.Helper()
		for end := time.Now().Add(time.Minute); answers(c, 50*time.Millisecond) == nil; {
			if time.Now().After(end) {
				t.Fatal("a link that is cut carries bytes")
			}
		}
	}
	const patience = 30 * time.Second
	away, back, other := dial(0, 1), dial(1, 0), dial(1, 2)
	for _, c := range []net.Conn{away, back, other} {
		if err := answers(c, patience); err != nil {
			t.Fatal(err)
		}
	}
	l.Cut(false, 0)
	for _, c := range []net.Conn{away, back, dial(0, 2), dial(2, 0)} {
		dead(c)
	}
	if err := answers(other, patience); err != nil {
		t.Errorf("a link between others: %v", err)
	}
	l.Heal()
	away = dial(0, 1)
	if err := answers(away, patience); err != nil {
		t.Errorf("a healed link: %v", err)
	}
	l.Cut(true, 1)
	late := dial(0, 1)
	dead(away)
	dead(late)
	l.Heal()
	late.SetDeadline(time.Now().Add(patience))
	if _, err := late.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection of the time of the cut does not end: %v", err)
	}
}
