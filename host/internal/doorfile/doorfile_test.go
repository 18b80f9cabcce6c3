package doorfile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/host/internal/doorfile"
	"github.com/flowhost/flowhost/run/access"
)

// echo answers with what it was sent; an operation "never" ends with its context.
type echo struct{}

func (echo) Do(ctx context.Context, op *access.Operation) access.Answer {
	if op.Kind == "never" {
		<-ctx.Done()
	}
	return access.Answer{Head: op.Head, Body: op.Body}
}

func (echo) Close() {}

func openFile(t testing.TB, held int64) (*door.Door, *doorfile.File) {
	t.Helper()
	d := door.New(t.Context(), door.Config{Open: func() door.Session { return echo{} }, Limits: door.Limits{Held: held}})
	t.Cleanup(func() {
		if late := d.End(nil); late != nil {
			t.Error("something is late")
		}
	})
	return d, &doorfile.File{Door: d, Await: func() {
		for !d.Look() {
			<-d.Ready()
		}
	}}
}

// A file may be closed in every state: before a request, within one, while it is under way,
// within its answer, and again. Nothing is held afterwards.
func TestCloseInEveryState(t *testing.T) {
	t.Parallel()
	write := func(f *doorfile.File, text string) { f.Write([]byte(text)) }
	for name, until := range map[string]func(*doorfile.File){
		"new":           func(*doorfile.File) {},
		"written":       func(f *doorfile.File) { write(f, `echo {"a":1}`+"\nbody") },
		"polled":        func(f *doorfile.File) { write(f, "never {}"); f.Pending() },
		"refused":       func(f *doorfile.File) { write(f, "nothing"); f.Pending() },
		"line begun":    func(f *doorfile.File) { write(f, "echo {}\nbody"); f.Read(make([]byte, 2)) },
		"line read":     func(f *doorfile.File) { write(f, "echo {}\nbody"); f.Read(make([]byte, 100)) },
		"read":          func(f *doorfile.File) { write(f, "echo {}\nbody"); readAll(f) },
		"closed":        func(f *doorfile.File) { write(f, "echo {}\nbody"); f.Close() },
		"closed twice":  func(f *doorfile.File) { write(f, "never {}"); f.Pending(); f.Close(); f.Close() },
		"write refused": func(f *doorfile.File) { write(f, "echo {}\n"); f.Write(make([]byte, 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, f := openFile(t, 1000)
			until(f)
			if errno := f.Close(); errno != 0 {
				t.Error(errno)
			}
			if n, errno := f.Write([]byte("x")); n != 0 || errno != sys.EBADF {
				t.Error("write:", n, errno)
			}
			if n, errno := f.Read(make([]byte, 1)); n != 0 || errno != sys.EBADF || f.Pending() {
				t.Error("read:", n, errno)
			}
			if !d.Hold(1000) {
				t.Error("something is held")
			}
		})
	}
}

func readAll(f *doorfile.File) []byte {
	var all []byte
	for p := make([]byte, 7); ; {
		n, errno := f.Read(p)
		if errno != 0 || n == 0 {
			return all
		}
		all = append(all, p[:n]...)
	}
}

// FuzzFile writes a request in two pieces. What is read is an answer with its body, or a
// fault, in the form that the ABI states.
func FuzzFile(f *testing.F) {
	f.Add([]byte("echo {\"a\":1}\nbody"), 3)
	f.Add([]byte("echo {}"), 0)
	f.Add([]byte(" \n"), 1)
	f.Add([]byte("echo []\n\n"), 9)
	f.Add([]byte("echo {} {}\nx"), 2)
	f.Fuzz(func(t *testing.T, request []byte, at int) {
		_, file := openFile(t, 1<<20)
		at = min(max(at, 0), len(request))
		for _, piece := range [][]byte{request[:at], request[at:]} {
			if n, errno := file.Write(piece); errno == 0 && n != len(piece) {
				t.Fatalf("%d bytes of %d were written", n, len(piece))
			}
		}
		if bytes.HasPrefix(request, []byte("never ")) {
			return
		}
		answer := readAll(file)
		line, body, found := bytes.Cut(answer, []byte("\n"))
		word, rest, _ := bytes.Cut(line, []byte(" "))
		size, head, _ := bytes.Cut(rest, []byte(" "))
		n, err := strconv.Atoi(string(size))
		if !found || err != nil || n != len(body) || !json.Valid(head) {
			t.Fatalf("%q gave %q", request, answer)
		}
		sent, want, _ := bytes.Cut(request, []byte("\n"))
		_, sentHead, _ := bytes.Cut(sent, []byte(" "))
		switch string(word) {
		case "ok":
			if !bytes.Equal(body, want) || !json.Valid(sentHead) {
				t.Fatalf("%q gave %q", request, answer)
			}
		case "fault":
			var fault access.Fault
			if err := json.Unmarshal(head, &fault); err != nil || fault.Code == "" || n != 0 {
				t.Fatalf("%q gave %q", request, answer)
			}
		default:
			t.Fatalf("%q gave %q", request, answer)
		}
	})
}
