// Package foreign grows directory trees that belong to somebody else, and takes
// pictures of them, so that tests can show that a program leaves them alone.
//
// The trees hold what a program may stumble over: files that look like its own,
// symbolic links out of the tree and in circles, FIFOs, sockets, empty files, and
// parts that cannot be written.
package foreign

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// lookalikes are names that flowhost gives to its own files, with a content that
// is none of flowhost's.
var lookalikes = []string{
	"format", "flowhost.lock", "history.index", "nats-context.json", "nats-operator-context.json",
	"jetstream/$G/streams/X/msgs/1.blk", "damaged/1.blk", "modules/" + strings.Repeat("ab", 32) + ".wasm",
	"CACHEDIR.TAG", "flowhost-modules/notes.txt", "flowhost-modules/CACHEDIR.TAG",
	"wazero-v1.12.0-amd64-linux/" + strings.Repeat("cd", 32), "wazero-dev-amd64-linux/" + strings.Repeat("ef", 32) + ".123.tmp",
	".new-123", ".fsync-1", ".context-2", ".module-3", "flows.hcl", "report.xml", "plugin.wasm", strings.Repeat("12", 32),
	"lost+found/#123",
}

var contents = []string{"", "mine\n", `{"version":1}`, `{"version":"1"}`, "Signature: 8a477f597d28d172789f06886806bc55\n", "\x00asm", "<?xml version=\"1.0\"?><svg/>", strings.Repeat("x", 100_000)}

// Grow fills a directory, that is there, with what the seed gives. At least one
// entry is a regular file with a content. Links point to outside, which is filled,
// too.
func Grow(t testing.TB, dir, outside string, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	must(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("do not touch"), 0o640))
	must(t, os.Mkdir(filepath.Join(outside, "flowhost-modules"), 0o750))
	must(t, os.WriteFile(filepath.Join(outside, "flowhost-modules", "precious"), []byte("do not touch"), 0o640))
	below := []string{dir}
	for i := range 1 + r.IntN(4) {
		sub := filepath.Join(below[r.IntN(len(below))], fmt.Sprint("dir", i))
		must(t, os.Mkdir(sub, 0o755))
		below = append(below, sub)
	}
	for _, name := range lookalikes {
		if r.IntN(4) == 0 {
			plant(t, r, filepath.Join(dir, name), outside)
		}
	}
	for i := range 1 + r.IntN(6) {
		plant(t, r, filepath.Join(below[r.IntN(len(below))], fmt.Sprint("file", i)), outside)
	}
	writeOld(t, r, filepath.Join(dir, "2019.tar"), "an archive")
	for _, sub := range below[1:] {
		if r.IntN(3) == 0 {
			must(t, os.Chmod(sub, 0o555))
			t.Cleanup(func() { os.Chmod(sub, 0o755) })
		}
	}
	must(t, os.Chmod(dir, []os.FileMode{0o755, 0o700, 0o750, 0o775, 0o711}[r.IntN(5)]))
}

// plant puts something at a path: a file mostly.
func plant(t testing.TB, r *rand.Rand, path, outside string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	switch r.IntN(8) {
	case 0:
		must(t, os.Symlink(filepath.Join(outside, "precious"), path))
	case 1:
		must(t, os.Symlink(outside, path))
	case 2:
		must(t, os.Symlink(filepath.Base(path), path)) // to itself
	case 3:
		pipe(t, path)
	case 4:
		socket(t, path)
	default:
		writeOld(t, r, path, contents[r.IntN(len(contents))])
	}
}

func writeOld(t testing.TB, r *rand.Rand, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), []os.FileMode{0o600, 0o644, 0o444, 0o755}[r.IntN(4)]))
	old := time.Now().Add(-time.Duration(1+r.IntN(5000)) * time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(path, old, old))
}

// socket makes a socket that nobody listens on. Paths that are too long for one
// get a file.
func socket(t testing.TB, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		must(t, os.WriteFile(path, []byte("no socket"), 0o600))
		return
	}
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
}

// Picture is a tree as it is: what can be seen of each entry, by its path.
type Picture map[string]string

// Take takes a picture of the directories and all below them. Links are not
// followed. except names paths that are left out, with what lies below them, and
// whose parents may have another time of change.
func Take(t testing.TB, except []string, dirs ...string) Picture {
	t.Helper()
	p, mayChange := Picture{}, map[string]bool{}
	for _, e := range except {
		mayChange[filepath.Dir(e)] = true
	}
	for _, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			for _, left := range except {
				if path == left && e.IsDir() {
					return fs.SkipDir
				}
				if path == left {
					return nil
				}
			}
			p[path], err = look(path, mayChange[path])
			return err
		}))
	}
	return p
}

func look(path string, mayChange bool) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	seen := info.Mode().String()
	if !mayChange {
		seen += " " + info.ModTime().Format(time.RFC3339Nano)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return seen + " -> " + target, err
	case info.Mode().IsRegular():
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrPermission) {
			return seen + fmt.Sprint(" ", info.Size()), nil
		}
		sum := sha256.Sum256(text)
		return seen + " " + hex.EncodeToString(sum[:8]), err
	}
	return seen, nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		_, _, line, _ := runtime.Caller(1)
		t.Fatalf("foreign.go:%d: %v", line, err)
	}
}
