package mail

import (
	"errors"
	"net/smtp"
)

// plainAuth is AUTH PLAIN (RFC 4616). Unlike that of net/smtp it has no exception for
// servers on the same machine: the session must be encrypted.
type plainAuth struct{ login }

func (a *plainAuth) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS {
		return "", nil, errPlain
	}
	return "PLAIN", []byte("\x00" + a.user + "\x00" + a.password), nil
}

func (a *plainAuth) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errQuestion
	}
	return nil, nil
}

// loginAuth is AUTH LOGIN, which was never specified: the server asks for the user first,
// then for the password, in words of its own.
type loginAuth struct{ login }

func (a *loginAuth) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS {
		return "", nil, errPlain
	}
	return "LOGIN", nil, nil
}

func (a *loginAuth) Next(_ []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case a.user != "":
		user := a.user
		a.user = ""
		return []byte(user), nil
	case a.password != "":
		password := a.password
		a.password = ""
		return []byte(password), nil
	}
	return nil, errQuestion
}

var (
	errPlain    = errors.New("there is no TLS for the credentials")
	errQuestion = errors.New("the server asks for more than a user and a password")
)
