package sdk

import (
	"time"

	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Publish implements Context.
func (c call) Publish(subject string, data []byte) error {
	return c.publish(Message{Subject: subject, Data: data})
}

// Message is a message on NATS.
type Message struct {
	Subject string
	Header  Header
	Data    []byte
}

func (m *Message) head() *guest.Head {
	head := new(guest.Head)
	head.Text("subject", m.Subject)
	head.Lists("headers", m.Header)
	return head
}

func (c call) publish(m Message) error {
	_, err := c.operate("publish", m.head(), m.Data, nil)
	return err
}

// Request implements Context.
func (c call) Request(subject string, data []byte) ([]byte, error) {
	return c.request(Message{Subject: subject, Data: data}, 0)
}

func (c call) request(m Message, timeout time.Duration) ([]byte, error) {
	head := m.head()
	head.Int("timeout_ms", ceilMilliseconds(timeout))
	return c.operate("request", head, m.Data, nil)
}
