package natsd

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/flowhost/flowhost/bus/internal/creds"
)

// Files of the data directory with what other programs need to connect, in the form
// that the nats command line reads.
const (
	ClientContext   = "nats-context.json"
	OperatorContext = "nats-operator-context.json"
)

// loadContext gives the user's password of an earlier start, or a new one. A file
// that others could read is not trusted: its password is replaced.
func loadContext(path, user, inbox string, log *slog.Logger) (creds.Context, error) {
	fresh := creds.Context{User: user, Password: rand.Text(), Inbox: inbox}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return creds.Context{}, fmt.Errorf("credentials: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		log.Warn("others could read the credentials: a new password was made", "file", path, "mode", mode)
		return fresh, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return creds.Context{}, fmt.Errorf("credentials: %w", err)
	}
	var stored creds.Context
	if err := json.Unmarshal(text, &stored); err != nil {
		return creds.Context{}, fmt.Errorf("credentials in %s are damaged: remove the file and a new password is made: %w", path, err)
	}
	if stored.User != user || stored.Password == "" {
		return fresh, nil
	}
	stored.Inbox = inbox
	return stored, nil
}

// storeContext replaces the file in one step, so that no reader sees half of it.
func storeContext(path string, c creds.Context) error {
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
