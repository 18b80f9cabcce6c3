package creds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// ReadContext reads the context that a host left in its data directory.
func ReadContext(file string) (Context, error) {
	var at Context
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		return at, fmt.Errorf("credentials of the host: %w", err)
	}
	return at, nil
}

// Context is the content of a context file.
type Context struct {
	URL      string `json:"url"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Nkey     string `json:"nkey,omitempty"`         // file with a seed
	Creds    string `json:"creds,omitempty"`        // file as nsc writes it
	Inbox    string `json:"inbox_prefix,omitempty"` // without it the user gets no answers
}

// Read reads a file with credentials: of a user in a JWT and its seed, as nsc
// writes them, of a seed alone, or a context.
func Read(file string) (by nats.Option, inbox string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("credentials: %w", err)
	}
	switch text := bytes.TrimSpace(text); {
	case bytes.HasPrefix(text, []byte("{")):
		var at Context
		if err := json.Unmarshal(text, &at); err != nil {
			return nil, "", fmt.Errorf("credentials in %s: %w", file, err)
		}
		by, err := at.Login()
		return by, at.Inbox, err
	case bytes.HasPrefix(text, []byte("SU")):
		by, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, "", fmt.Errorf("credentials in %s: %w", file, err)
		}
		return by, "", nil
	}
	return nats.UserCredentials(file), "", nil
}

// Login is the option with which the user of the context connects.
func (c Context) Login() (nats.Option, error) {
	switch {
	case c.Nkey != "":
		return nats.NkeyOptionFromSeed(c.Nkey)
	case c.Creds != "":
		return nats.UserCredentials(c.Creds), nil
	}
	return nats.UserInfo(c.User, c.Password), nil
}
