package guestfs_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/internal/guestfs"
)

// player makes operations of bytes.
type player struct {
	*rig
	script []byte
	open   []sys.File
}

func (p *player) next() int {
	if len(p.script) == 0 {
		return 0
	}
	b := p.script[0]
	p.script = p.script[1:]
	return int(b)
}

// parts are what paths are made of: names that are there, that links have, and
// that lead elsewhere.
var parts = []string{
	"data", "out", "d", "e.txt", "old.txt", "a.txt", "b", "new", "x", "..", ".", "", "up", "parent", "far", "folder", "here", "etc", "root",
	"loop", "good", "pipe", "absolute", "dangling", "secret.txt", "outside", "inside_and_out", "ping",
}

func (p *player) path() string {
	text := parts[p.next()%2]
	for n := p.next() % 4; n > 0; n-- {
		text += "/" + parts[p.next()%len(parts)]
	}
	return text
}

func (p *player) file() sys.File {
	if len(p.open) == 0 {
		p.open = append(p.open, p.rig.open("/", sys.O_RDONLY))
	}
	return p.open[p.next()%len(p.open)]
}

func (p *player) step() {
	switch p.next() % 16 {
	case 0, 1, 2:
		flags := []sys.Oflag{sys.O_RDONLY, sys.O_RDWR, sys.O_WRONLY, sys.O_RDWR | sys.O_CREAT, sys.O_RDWR | sys.O_CREAT | sys.O_TRUNC, sys.O_RDWR | sys.O_APPEND | sys.O_CREAT, sys.O_RDONLY | sys.O_NOFOLLOW, sys.O_RDONLY | sys.O_DIRECTORY}
		if f, errno := p.OpenFile(p.path(), flags[p.next()%len(flags)], fs.FileMode(p.next())); errno == 0 {
			p.open = append(p.open, f)
		}
	case 3:
		p.checkRead(p.file())
	case 4:
		_, _ = p.file().Write(make([]byte, p.next()))
	case 5:
		_, _ = p.file().Pwrite(make([]byte, p.next()), int64(p.next())<<(p.next()%64))
	case 6:
		_ = p.file().Truncate(int64(p.next()) << (p.next() % 64))
	case 7:
		_, _ = p.file().Seek(int64(p.next())<<(p.next()%64), p.next()%4)
	case 8:
		_ = p.Mkdir(p.path(), 0o777)
	case 9, 10:
		_ = p.Rename(p.path(), p.path())
	case 11:
		_ = p.Unlink(p.path())
	case 12:
		_ = p.Rmdir(p.path())
	case 13:
		_ = p.Utimens(p.path(), int64(p.next()), int64(p.next()))
	case 14:
		_, _ = p.Readlink(p.path())
		_, _ = p.Stat(p.path())
	case 15:
		_ = p.file().Close()
	}
}

func (p *player) checkRead(f sys.File) {
	buf := make([]byte, 100)
	if n, _ := f.Pread(buf, 0); n >= len(secret) && string(buf[:len(secret)]) == secret {
		p.t.Fatal("the secret was read")
	}
	_, _ = f.Read(buf)
	if dir, _ := f.IsDir(); dir {
		found, _ := f.Readdir(p.next())
		for _, e := range found {
			if e.Name == unseen || e.Name == "passwd" {
				p.t.Fatalf("%s is listed", e.Name)
			}
		}
	}
}

// FuzzOperations plays any operations in any order: nothing outside of what is
// granted is read or changed, nothing that may only be read is changed, and the
// limits hold.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 1, 4, 1, 0, 3, 0, 4, 200, 5, 9, 9, 3, 15})
	f.Add([]byte{9, 1, 1, 12, 1, 1, 2, 0, 1, 2, 2, 24, 0, 0, 3})
	f.Add([]byte{8, 1, 1, 8, 8, 1, 2, 8, 7, 0, 1, 3, 8, 7, 4, 3, 0, 4, 255, 6, 255, 62, 7, 1, 40, 0, 4, 1})
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 { // so that every run of the tests plays some
		script := make([]byte, 600)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 2000)]
		limits := guestfs.Limits{OpenFiles: 8, Written: 64 << 10, Entries: 64}
		p := &player{rig: newRig(t), script: script}
		outside, data := tree(t, filepath.Join(p.dir, "outside")), tree(t, filepath.Join(p.dir, "flows/data"))
		p.begin(limits)
		for len(p.script) > 0 {
			p.step()
		}
		usage := p.Close()
		if usage.Written > limits.Written {
			t.Errorf("%+v", usage)
		}
		if tree(t, filepath.Join(p.dir, "outside")) != outside || tree(t, filepath.Join(p.dir, "flows/data")) != data {
			t.Error("something was changed that must not be")
		}
		if text, err := os.ReadFile(filepath.Join(p.dir, "flows/secret.txt")); err != nil || string(text) != secret {
			t.Errorf("beside the grants: %q %v", text, err)
		}
		if size := sizeOf(t, filepath.Join(p.dir, "flows/out")); size > limits.Written+100 {
			t.Errorf("%d bytes", size)
		}
		for _, f := range p.open {
			if n, errno := f.Pread(make([]byte, 1), 0); n != 0 || errno == 0 {
				t.Error("a file can be read after the call")
			}
		}
	})
}

// sizeOf sums up the sizes of files below a directory.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	}))
	return size
}
