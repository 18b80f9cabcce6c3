package natsd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
)

func TestFormatOfNewFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "format")
	for _, version := range []string{"v1.2.3", "v1.2.4"} { // the second start leaves it as it is
		bustest.StopServer(t, bustest.StartServer(t, natsd.Config{Dir: dir, Version: version}))
		text, err := os.ReadFile(name)
		if want := `{"version":2,"flowhost":"v1.2.3"}` + "\n"; err != nil || string(text) != want {
			t.Errorf("format = %q, %v, want %q", text, err, want)
		}
	}
}

func TestFormatOfOlderProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte(`{"version":1,"flowhost":"v0.4"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true, Version: "v1"})
	var refused *natsd.FormatError
	if !errors.As(err, &refused) || *refused != (natsd.FormatError{Dir: dir, Version: 1, Known: 2, By: "v0.4"}) {
		t.Fatalf("StartServer = %v, want a *FormatError", err)
	}
	for _, part := range []string{dir, "move the directory away", "run flowhost v0.4", "until its runs have finished"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestFormatOfNewerProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte(`{"version":7,"flowhost":"v9.1","more":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true})
	var refused *natsd.FormatError
	if !errors.As(err, &refused) || *refused != (natsd.FormatError{Dir: dir, Version: 7, Known: 2, By: "v9.1"}) {
		t.Fatalf("StartServer = %v, want a *FormatError", err)
	}
	for _, part := range []string{dir, "format 7", "reads format 2", "flowhost v9.1", "give this host another directory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "jetstream")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was touched: %v", err)
	}
	bustest.StartServer(t, natsd.Config{Dir: t.TempDir()}) // the lock of the refused one is no hindrance
}

func TestFormatDamaged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"version":0,"flowhost":"v1"}`, `{"version":1}`, `{"flowhost":"v1"}`, `"1"`, strings.Repeat(" ", 5000) + `{"version":1,"flowhost":"v1"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "format"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true})
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "format")) {
			t.Errorf("StartServer with format %q = %v, want an error that names the file", text, err)
		}
	}
}

func TestFsyncTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir})
	if s.FsyncTime() <= 0 {
		t.Errorf("FsyncTime = %s", s.FsyncTime())
	}
	left, err := filepath.Glob(filepath.Join(dir, ".fsync-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
