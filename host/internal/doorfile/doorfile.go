// Package doorfile shows a guest the operations of a door as a file, for languages that
// have files and no other imports. Each opening of the file is one operation; see
// [abi.DoorFile] for what is written and read. It belongs to the goroutine of the call.
package doorfile

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strconv"

	"github.com/tetratelabs/wazero/experimental/sys"
	stat "github.com/tetratelabs/wazero/sys"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// maxLine bounds the first line of what a guest writes.
const maxLine = 320 << 10

// File is one opening. It implements wasi.Pending.
type File struct {
	sys.UnimplementedFile

	Door  *door.Door // nil while there is no call: everything is denied
	Await func()     // waits until an operation of the door may have ended; it may panic to unwind the guest

	request  []byte // that was written and has not been started
	ticket   int32  // 0 before it is started
	refused  []byte // the answer to a request that could not be started
	line     []byte // of the answer, unread; nil until the operation has ended
	offset   int    // of what is read of the answer's body
	answered bool
	nonblock bool
	closed   bool
}

// Write adds to the request. The body may come in pieces.
func (f *File) Write(p []byte) (int, sys.Errno) {
	switch {
	case f.closed:
		return 0, sys.EBADF
	case f.started():
		return 0, sys.EINVAL
	case f.Door == nil:
		return len(p), 0
	case !f.Door.Hold(len(p)):
		return 0, sys.EIO
	}
	f.request = append(f.request, p...)
	return len(p), 0
}

func (f *File) started() bool { return f.ticket != 0 || f.refused != nil }

// start starts the operation that was written.
func (f *File) start() {
	if f.started() {
		return
	}
	if f.Door == nil {
		f.refused = answerLine("fault", 0, []byte(`{"code":"denied","message":"there is no call yet"}`))
		return
	}
	kind, head, body, err := parse(f.request)
	f.Door.Free(len(f.request))
	f.request = nil
	if err == "" {
		var errno abi.Errno
		if f.ticket, errno = f.Door.Start(kind, head, body); errno == 0 {
			return
		}
		err = refusals[errno]
	}
	code := access.CodeInvalid
	if err == refusals[abi.EMFILE] || err == refusals[abi.ENOSPC] {
		code = access.CodeBudget
	}
	text, _ := json.Marshal(access.Fault{Code: code, Message: err}) // texts only
	f.refused = answerLine("fault", 0, text)
}

var refusals = map[abi.Errno]string{
	abi.EINVAL: "the operation has no kind, or its head is not a JSON object",
	abi.E2BIG:  "the head or the body is too large",
	abi.EMFILE: "too many operations are open: close those that are read",
	abi.ENOSPC: "the attempt has used up its operations, or their bytes",
}

// parse divides a request: kind, space, head, newline, body.
func parse(request []byte) (kind string, head, body []byte, fault string) {
	line, body, _ := bytes.Cut(request, []byte("\n"))
	word, head, found := bytes.Cut(line, []byte(" "))
	if !found || len(line) > maxLine {
		return "", nil, nil, "the first line must be the kind of the operation, a space and its head, a JSON object: http {\"method\":\"GET\",…}"
	}
	return string(word), head, body, ""
}

// Pending reports whether reading would have to wait. It starts the operation.
func (f *File) Pending() bool {
	if f.closed {
		return false
	}
	f.start()
	return f.refused == nil && !f.poll()
}

// poll reports whether the operation has ended, and takes its answer's first line.
func (f *File) poll() bool {
	if f.answered {
		return true
	}
	head, errno := f.Door.Part(f.ticket, abi.PartHead)
	if errno == abi.EAGAIN {
		return false
	}
	word, size := "fault", 0
	if body, errno := f.Door.Part(f.ticket, abi.PartBody); errno == 0 {
		word, size = "ok", len(body)
	}
	f.line, f.answered = answerLine(word, size, head), true
	return true
}

// answerLine is the first line of an answer.
func answerLine(word string, size int, head []byte) []byte {
	line := strconv.AppendInt(append([]byte(word), ' '), int64(size), 10)
	if len(head) == 0 {
		head = []byte("{}")
	}
	return append(append(append(line, ' '), head...), '\n')
}

// Read gives the answer: ok or fault, the size of the body, the head, a newline, and the body.
func (f *File) Read(p []byte) (int, sys.Errno) {
	if f.closed {
		return 0, sys.EBADF
	}
	for f.Pending() {
		if f.nonblock {
			return 0, sys.EAGAIN
		}
		f.Await()
	}
	if f.refused != nil && !f.answered {
		f.line, f.answered = f.refused, true
	}
	if len(f.line) > 0 {
		n := copy(p, f.line)
		f.line = f.line[n:]
		return n, 0
	}
	if f.refused != nil {
		return 0, 0
	}
	body, errno := f.Door.Part(f.ticket, abi.PartBody)
	if errno != 0 {
		return 0, 0 // the fault was the answer
	}
	n := copy(p, body[f.offset:])
	f.offset += n
	return n, 0
}

// Close closes the operation.
func (f *File) Close() sys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	if f.Door == nil {
		return 0
	}
	f.Door.Free(len(f.request))
	f.request = nil
	if f.ticket != 0 {
		f.Door.Close(f.ticket)
	}
	return 0
}

// IsDir reports that it is no directory.
func (f *File) IsDir() (bool, sys.Errno) { return false, 0 }

// IsAppend reports that writing needs no place.
func (f *File) IsAppend() bool { return false }

// Stat shows a device, so that languages poll it.
func (f *File) Stat() (stat.Stat_t, sys.Errno) {
	return stat.Stat_t{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, Nlink: 1}, 0
}

// IsNonblock reports whether reading fails with EAGAIN instead of waiting.
func (f *File) IsNonblock() bool { return f.nonblock }

// SetNonblock sets whether it does.
func (f *File) SetNonblock(enable bool) sys.Errno {
	f.nonblock = enable
	return 0
}

// Poll reports whether reading would not wait.
func (f *File) Poll(flag sys.Pflag, _ int32) (ready bool, errno sys.Errno) {
	return flag&sys.POLLIN == 0 || !f.Pending(), 0
}

// FS is the files of a guest, and the door among them.
type FS struct {
	sys.FS
	Open func() *File // nil: there is no door
}

// OpenFile implements sys.FS.
func (s *FS) OpenFile(path string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	if path != abi.DoorFile || s.Open == nil {
		return s.FS.OpenFile(path, flag, perm)
	}
	if flag&(sys.O_DIRECTORY|sys.O_EXCL) != 0 {
		return nil, sys.EINVAL
	}
	f := s.Open()
	f.nonblock = flag&sys.O_NONBLOCK != 0
	return f, 0
}
