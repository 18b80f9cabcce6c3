// Command guest uses much of WASI and states what it sees.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	fmt.Println("args", len(os.Args), os.Args)
	fmt.Println("env", os.Environ())
	in, err := io.ReadAll(os.Stdin)
	fmt.Printf("stdin %q %v\n", in, err)
	fmt.Fprintln(os.Stderr, "to stderr")
	number := make([]byte, 8)
	_, err = rand.Read(number)
	fmt.Printf("random %x %v\n", number, err)
	began := time.Now()
	time.Sleep(30 * time.Millisecond)
	fmt.Println("slept", time.Since(began) >= 30*time.Millisecond, began.Year())
	files()
	directories()
	faults()
	os.Exit(7)
}

func say(what string, err error) {
	var number syscall.Errno
	errors.As(err, &number)
	fmt.Println(what, int(number), err)
}

func files() {
	f, err := os.Create("file.txt")
	say("create", err)
	n, err := f.WriteString(strings.Repeat("0123456789", 1000))
	say(fmt.Sprint("write ", n), err)
	at, err := f.Seek(-5, io.SeekEnd)
	say(fmt.Sprint("seek ", at), err)
	rest, err := io.ReadAll(f)
	say(fmt.Sprintf("read %q", rest), err)
	n, err = f.WriteAt([]byte("ABC"), 3)
	say(fmt.Sprint("write at ", n), err)
	part := make([]byte, 8)
	n, err = f.ReadAt(part, 1)
	say(fmt.Sprintf("read at %q", part[:n]), err)
	say("truncate", f.Truncate(20))
	say("sync", f.Sync())
	stat(f.Stat())
	say("close", f.Close())
	say("close again", f.Close())
	a, err := os.OpenFile("file.txt", os.O_APPEND|os.O_WRONLY, 0)
	say("append", err)
	_, err = a.WriteString("more")
	say("append", err)
	_, err = a.Read(part)
	say("read what is only written", err)
	say("close", a.Close())
	text, err := os.ReadFile("file.txt")
	say(string(text), err)
	when := time.Unix(1_500_000_000, 5)
	say("times", os.Chtimes("file.txt", when, when))
	stat(os.Stat("file.txt"))
}

func stat(info fs.FileInfo, err error) {
	if err != nil {
		say("stat", err)
		return
	}
	fmt.Println("stat", info.Name(), info.Size(), info.Mode().Type(), info.ModTime().Year())
}

func directories() {
	say("mkdir", os.Mkdir("dir", 0o755))
	say("mkdir", os.MkdirAll("dir/a/b/c", 0o755))
	for i := range 300 {
		if err := os.WriteFile(fmt.Sprintf("dir/a/%d%s", i, strings.Repeat("x", i%100)), nil, 0o600); err != nil {
			say("write", err)
		}
	}
	list("dir")
	list("dir/a")
	d, err := os.Open("dir/a")
	say("open", err)
	total := 0
	for {
		names, err := d.Readdirnames(7)
		total += len(names)
		if err != nil {
			say(fmt.Sprint("entries ", total), err)
			break
		}
	}
	say("close", d.Close())
	say("rename", os.Rename("dir/a", "dir/z"))
	say("rename", os.Rename("file.txt", "dir/z/moved"))
	stat(os.Lstat("dir/z/moved"))
	say("rmdir", os.Remove("dir/z"))
	var walked []string
	err = filepath.WalkDir("/dir", func(p string, e fs.DirEntry, err error) error {
		walked = append(walked, fmt.Sprint(p, e.Type(), err))
		return nil
	})
	slices.Sort(walked)
	say(fmt.Sprint("walked ", len(walked), walked[len(walked)-1]), err)
	say("remove all", os.RemoveAll("dir/z/b"))
	say("remove", os.Remove("dir/z/moved"))
	list("dir/z/b")
}

func list(dir string) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, fmt.Sprint(e.Name(), e.IsDir()))
	}
	slices.Sort(names)
	say(fmt.Sprint(dir, names), err)
}

func faults() {
	_, err := os.Open("missing")
	say("open", err)
	_, err = os.Open("../outside")
	say("open", err)
	_, err = os.OpenFile("dir", os.O_RDWR, 0)
	say("open", err)
	_, err = os.OpenFile("made", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	say("open", err)
	_, err = os.OpenFile("made", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	say("open", err)
	_, err = os.ReadDir("made")
	say("read", err)
	_, err = os.Readlink("made")
	say("readlink", err)
	say("rmdir", syscall.Rmdir("made"))
	say("unlink", syscall.Unlink("dir"))
	say("rename", os.Rename("missing", "other"))
	say("chdir", os.Chdir("dir"))
	_, err = os.Stat("z")
	say("stat", err)
}
