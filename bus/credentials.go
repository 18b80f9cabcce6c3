package bus

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
)

// Files of the data folder with what other programs need to connect, in the form
// that the nats command line reads.
const (
	ClientContext   = "nats-context.json"
	OperatorContext = "nats-operator-context.json"
)

// natsContext is the content of a context file.
type natsContext struct {
	URL      string `json:"url"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Nkey     string `json:"nkey,omitempty"`         // file with a seed
	Creds    string `json:"creds,omitempty"`        // file as nsc writes it
	Inbox    string `json:"inbox_prefix,omitempty"` // without it the user gets no answers
}

// loadContext gives the user's password of an earlier start, or a new one. A file
// that others could read is not trusted: its password is replaced.
func loadContext(path, user, inbox string, log *slog.Logger) (natsContext, error) {
	fresh := natsContext{User: user, Password: rand.Text(), Inbox: inbox}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return natsContext{}, fmt.Errorf("credentials: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		log.Warn("others could read the credentials: a new password was made", "file", path, "mode", mode)
		return fresh, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return natsContext{}, fmt.Errorf("credentials: %w", err)
	}
	var stored natsContext
	if err := json.Unmarshal(text, &stored); err != nil {
		return natsContext{}, fmt.Errorf("credentials in %s are damaged: remove the file and a new password is made: %w", path, err)
	}
	if stored.User != user || stored.Password == "" {
		return fresh, nil
	}
	stored.Inbox = inbox
	return stored, nil
}

// storeContext replaces the file in one step, so that no reader sees half of it.
func storeContext(path string, c natsContext) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".context-*") // mode 0600
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

// credentials reads a file with credentials: of a user in a JWT and its seed, as nsc
// writes them, of a seed alone, or a context.
func credentials(file string) (by nats.Option, inbox string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("credentials: %w", err)
	}
	switch text := bytes.TrimSpace(text); {
	case bytes.HasPrefix(text, []byte("{")):
		var at natsContext
		if err := json.Unmarshal(text, &at); err != nil {
			return nil, "", fmt.Errorf("credentials in %s: %w", file, err)
		}
		by, err := at.login()
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

// login is the option with which the user of the context connects.
func (c natsContext) login() (nats.Option, error) {
	switch {
	case c.Nkey != "":
		return nats.NkeyOptionFromSeed(c.Nkey)
	case c.Creds != "":
		return nats.UserCredentials(c.Creds), nil
	}
	return nats.UserInfo(c.User, c.Password), nil
}
