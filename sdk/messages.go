package sdk

import "time"

type messageHead struct {
	Subject string `json:"subject"`
	Headers Header `json:"headers,omitempty"`
	Timeout int64  `json:"timeout_ms,omitempty"`
}

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

func (c call) publish(m Message) error {
	_, err := c.operate("publish", messageHead{Subject: m.Subject, Headers: m.Header}, m.Data, nil)
	return err
}

// Request implements Context.
func (c call) Request(subject string, data []byte) ([]byte, error) {
	return c.request(Message{Subject: subject, Data: data}, 0)
}

func (c call) request(m Message, timeout time.Duration) ([]byte, error) {
	return c.operate("request", messageHead{Subject: m.Subject, Headers: m.Header, Timeout: ceilMilliseconds(timeout)}, m.Data, nil)
}
