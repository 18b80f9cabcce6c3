package creds_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/bus/internal/creds"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]creds.Login{
		`{"url":"nats://h:4222","user":"u","password":"p","inbox_prefix":"_IN"}`: {URL: "nats://h:4222", Inbox: "_IN"},
		"\n {\"token\":\"t\",\"description\":\"of the nats command\"}":           {},
	} {
		got, err := creds.Read(write(t, text))
		if err != nil || got.By == nil || got.URL != want.URL || got.Inbox != want.Inbox {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// What is wrong with a file is an error about the file, not one of a connection.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for file, want := range map[string]string{
		none:                             "credentials in " + none + ": no such file or directory",
		t.TempDir():                      "is a directory",
		write(t, ""):                     "the form is unknown",
		write(t, "user:password"):        "the form is unknown",
		write(t, "[]"):                   "the form is unknown",
		write(t, "SUANONSENSE"):          "nkeys: ",
		write(t, "{"):                    "as a NATS context: unexpected end",
		write(t, `{"user":7}`):           "as a NATS context: json: ",
		write(t, `{"url":"nats:h"}`):     `names no "user", "token", "nkey" or "creds"`,
		write(t, `{"creds":"`+none+`"}`): `creds = "` + none + `": no such file`,
		write(t, `{"nkey":"`+none+`"}`):  `nkey = "` + none + `": no such file`,
	} {
		_, err := creds.Read(file)
		if wrong := (*creds.FileError)(nil); !errors.As(err, &wrong) || wrong.File != file || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := creds.ReadContext(write(t, `{"user":"u"}`)); err == nil || !strings.Contains(err.Error(), `with the "url"`) {
		t.Errorf("a context without an address: %v", err)
	}
}
