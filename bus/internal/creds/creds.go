package creds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// FileError reports that a file with credentials cannot be used.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("credentials in %s: %s", e.File, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// ErrNoURL reports credentials without the address of a server.
var ErrNoURL = errors.New(`this is no NATS context with the "url" of a server`)

var errNoCredentials = errors.New(`the form is unknown: expected are a file of nsc with a user's JWT and seed, a seed that begins with SU, or a NATS context, {"user":"…","password":"…"} or with "token", "nkey" or "creds"`)

// Login is who connects, and what else the file states.
type Login struct {
	By    nats.Option
	Inbox string // prefix of the subjects on which the user may receive answers; empty: any
	URL   string // of the server; empty in files that are no context
}

// Context is the content of a context file.
type Context struct {
	URL      string `json:"url"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
	Nkey     string `json:"nkey,omitempty"`         // file with a seed
	Creds    string `json:"creds,omitempty"`        // file as nsc writes it
	Inbox    string `json:"inbox_prefix,omitempty"` // without it the user gets no answers
}

// Read reads a file with credentials: of a user in a JWT and its seed, as nsc
// writes them, of a seed alone, or a context. Its errors are *FileError.
func Read(file string) (Login, error) {
	login, err := read(file)
	if err != nil {
		return login, &FileError{file, err}
	}
	return login, nil
}

// ReadContext reads a context, which has the address of the server, too. Its errors are
// *FileError.
func ReadContext(file string) (Login, error) {
	login, err := Read(file)
	if err == nil && login.URL == "" {
		err = &FileError{file, ErrNoURL}
	}
	return login, err
}

func read(file string) (Login, error) {
	text, err := readFile(file)
	if err != nil {
		return Login{}, err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		by, err := fromKeys(file, text)
		return Login{By: by}, err
	}
	var at Context
	if err := json.Unmarshal(text, &at); err != nil {
		return Login{}, fmt.Errorf("as a NATS context: %w", err)
	}
	by, err := at.login()
	return Login{By: by, Inbox: at.Inbox, URL: at.URL}, err
}

// readFile leaves out of its errors what [FileError] states.
func readFile(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return text, err
}

// fromKeys is the option for a file of nsc, or of a seed. The file is read again at each
// connection.
func fromKeys(file string, text []byte) (nats.Option, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("SU")) {
		return nats.NkeyOptionFromSeed(file)
	}
	if _, err := nkeys.ParseDecoratedUserNKey(text); err != nil {
		return nil, errNoCredentials
	}
	return nats.UserCredentials(file), nil
}

// login is the option with which the user of the context connects.
func (c Context) login() (nats.Option, error) {
	switch {
	case c.User != "":
		return nats.UserInfo(c.User, c.Password), nil
	case c.Token != "":
		return nats.Token(c.Token), nil
	case c.Nkey != "":
		return fromFile("nkey", c.Nkey)
	case c.Creds != "":
		return fromFile("creds", c.Creds)
	}
	return nil, errors.New(`the NATS context names no "user", "token", "nkey" or "creds"`)
}

// fromFile is the option for a file that a context names.
func fromFile(name, file string) (nats.Option, error) {
	text, err := readFile(file)
	var by nats.Option
	if err == nil {
		by, err = fromKeys(file, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s = %q: %w", name, file, err)
	}
	return by, nil
}
