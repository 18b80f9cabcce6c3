package artifacts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// maxName bounds the name and the content type of an artifact, in bytes.
const maxName = 256

type createHead struct {
	Name        string `json:"name"`         // by which the attempt can open it once it is committed
	ContentType string `json:"content_type"` //
}

type handleHead struct {
	Handle int `json:"handle"`
}

type openHead struct {
	Digest string `json:"digest"`
	Name   string `json:"name"` // of one that the attempt has committed
}

type readHead struct {
	Handle int   `json:"handle"`
	Offset int64 `json:"offset"`
	Length int64 `json:"length"` // default ops.MaxBody
}

type sizeHead struct {
	Size int64 `json:"size"`
}

type committed struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

type opened struct {
	Handle      int    `json:"handle"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type,omitempty"`
}

type readPart struct {
	Size int64 `json:"size"`
	End  bool  `json:"end"` // the part ends where the artifact does
}

// create begins an artifact: head {name, content_type} → {handle}.
func (s *Session) create(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h createHead
	if fault := decode(op, &h); fault != nil {
		return access.Answer{}, fault
	}
	if !isText(h.Name) || !isText(h.ContentType) {
		return access.Answer{}, ops.Invalid("%s failed: name or content_type is longer than 256 bytes or has characters that are not visible", op.Kind)
	}
	number, fault := s.add(ctx, op.Kind, func() (*handle, error) {
		w, err := s.cfg.Store.Begin(ctx)
		if err != nil {
			return nil, err
		}
		return newWriting(w, h.Name, h.ContentType), nil
	})
	return ops.Done(handleHead{number}, nil), fault
}

// write appends to an artifact: head {handle}, and a part as body → {size}.
func (s *Session) write(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h handleHead
	fault := ops.Head(op, &h)
	if fault == nil {
		fault = ops.CheckBody(op)
	}
	if fault != nil {
		return access.Answer{}, fault
	}
	return s.use(op.Kind, h.Handle, func(at *handle) (access.Answer, *access.Fault) {
		w, fault := at.written(op.Kind)
		if fault != nil {
			return access.Answer{}, fault
		}
		if w.info.Size+int64(len(op.Body)) > s.cfg.Max {
			return access.Answer{}, w.fail(ctx, ops.TooLarge("%s failed: an artifact has at most %d bytes: write several", op.Kind, s.cfg.Max))
		}
		if err := w.writer.Write(ctx, op.Body); err != nil {
			return access.Answer{}, w.fail(ctx, s.fault(ctx, op.Kind, err))
		}
		w.digest.Write(op.Body)
		w.info.Size += int64(len(op.Body))
		return ops.Done(sizeHead{w.info.Size}, nil), nil
	})
}

// commit stores an artifact durably and closes its handle: head {handle} → {digest, size}.
func (s *Session) commit(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h handleHead
	if fault := decode(op, &h); fault != nil {
		return access.Answer{}, fault
	}
	return s.use(op.Kind, h.Handle, func(at *handle) (access.Answer, *access.Fault) {
		w, fault := at.written(op.Kind)
		if fault != nil {
			return access.Answer{}, fault
		}
		if s.count() >= MaxMade {
			return access.Answer{}, &access.Fault{Code: access.CodeBudget,
				Message: "artifact.commit failed: the attempt has committed 4096 artifacts: write the others in another task"}
		}
		digest := Digest(w.digest.Sum(nil))
		if err := w.writer.Commit(ctx, digest, w.info, s.cfg.Now()); err != nil {
			return access.Answer{}, w.fail(ctx, s.fault(ctx, op.Kind, err))
		}
		at.closed = true
		s.note(digest, w) // before Close no longer waits for this handle
		s.handles.free(h.Handle)
		return ops.Done(committed{digest, w.info.Size}, nil), nil
	})
}

// open opens an artifact for reading: head {digest} or {name} → {handle, size, content_type}.
func (s *Session) open(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h openHead
	if fault := decode(op, &h); fault != nil {
		return access.Answer{}, fault
	}
	digest, contentType, own, fault := s.find(op.Kind, &h)
	if fault != nil {
		return access.Answer{}, fault
	}
	answer := opened{}
	answer.Handle, fault = s.add(ctx, op.Kind, func() (*handle, error) {
		found, err := s.cfg.Store.Open(ctx, digest)
		reader, err := check(found, err, digest)
		if err != nil {
			return nil, err
		}
		info := reader.Info()
		answer.Size, answer.ContentType = info.Size, info.ContentType
		if own {
			answer.ContentType = contentType
		}
		return &handle{reader: reader}, nil
	})
	return ops.Done(answer, nil), fault
}

// read reads a part of an artifact: head {handle, offset, length} → {size, end}, and the part
// as body, which is shorter only at the end.
func (s *Session) read(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h readHead
	if fault := decode(op, &h); fault != nil {
		return access.Answer{}, fault
	}
	if h.Length == 0 {
		h.Length = ops.MaxBody
	}
	if h.Offset < 0 || h.Length < 0 || h.Length > ops.MaxBody {
		return access.Answer{}, ops.Invalid("%s failed: offset or length is negative, or length is more than %d", op.Kind, ops.MaxBody)
	}
	return s.use(op.Kind, h.Handle, func(at *handle) (access.Answer, *access.Fault) {
		if at.reader == nil {
			return access.Answer{}, ops.Invalid("%s failed: handle %d is of an artifact that is being written: commit it and open it by its digest", op.Kind, h.Handle)
		}
		size := at.reader.Info().Size
		part := make([]byte, max(min(h.Length, size-h.Offset), 0))
		n, err := at.reader.ReadAt(ctx, part, h.Offset)
		if err != nil {
			return access.Answer{}, s.fault(ctx, op.Kind, err)
		}
		return ops.Done(readPart{int64(n), h.Offset+int64(n) >= size}, part), nil
	})
}

// close closes a handle, and drops an artifact that is not committed: head {handle} → {}.
func (s *Session) close(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h handleHead
	if fault := decode(op, &h); fault != nil {
		return access.Answer{}, fault
	}
	at, fault := s.handles.get(op.Kind, h.Handle)
	if fault != nil {
		return access.Answer{}, fault
	}
	s.handles.free(h.Handle)
	if err := at.close(ctx); err != nil {
		return access.Answer{}, s.fault(ctx, op.Kind, err)
	}
	return ops.Done(struct{}{}, nil), nil
}

// decode reads the head of an operation that has no body.
func decode(op *access.Operation, into any) *access.Fault {
	if fault := ops.Head(op, into); fault != nil {
		return fault
	}
	return ops.NoBody(op)
}

// add opens a handle on a place of its own.
func (s *Session) add(ctx context.Context, kind string, open func() (*handle, error)) (int, *access.Fault) {
	number, fault := s.handles.reserve(kind)
	if fault != nil {
		return 0, fault
	}
	h, err := open()
	if err != nil {
		s.handles.free(number)
		return 0, s.fault(ctx, kind, err)
	}
	if !s.handles.set(number, h) {
		if err := h.close(ctx); err != nil {
			s.cfg.Log.Warn("an artifact could not be closed", "error", err)
		}
		return 0, ended(kind)
	}
	return number, nil
}

// use works on a handle that is open.
func (s *Session) use(kind string, number int, work func(*handle) (access.Answer, *access.Fault)) (access.Answer, *access.Fault) {
	at, fault := s.handles.get(kind, number)
	if fault != nil {
		return access.Answer{}, fault
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.closed {
		return access.Answer{}, ops.Invalid("%s failed: handle %d is closed", kind, number)
	}
	return work(at)
}

// written is what the handle writes.
func (h *handle) written(kind string) (*writing, *access.Fault) {
	switch {
	case h.writing == nil:
		return nil, ops.Invalid("%s failed: the handle is of an artifact that was opened for reading", kind)
	case h.writing.failure != nil:
		return nil, h.writing.failure
	}
	return h.writing, nil
}

// find decides which artifact the attempt may open, and gives the content type of its own.
func (s *Session) find(kind string, h *openHead) (digest, contentType string, own bool, fault *access.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest = h.Digest
	switch {
	case (h.Digest == "") == (h.Name == ""):
		return "", "", false, ops.Invalid("%s failed: it takes a digest or a name", kind)
	case h.Name != "":
		if digest = s.name[h.Name]; digest == "" {
			return "", "", false, &access.Fault{Code: access.CodeNotFound, Message: "artifact.open failed: the attempt has committed no artifact of that name"}
		}
	case name(digest) == "":
		return "", "", false, ops.Invalid("%s failed: a digest is sha256: and 64 hexadecimal digits in lower case", kind)
	}
	contentType, own = s.made[digest]
	if !own && (s.readable == nil || !s.readable(digest)) {
		return "", "", false, &access.Fault{Code: access.CodeDenied, Target: digest, Rule: "not in the input",
			Message: "artifact.open failed: the digest occurs neither in the input nor in the configuration of the task: pass it there"}
	}
	return digest, contentType, own, nil
}

// note remembers what the attempt has committed.
func (s *Session) note(digest string, w *writing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.made[digest]; !known {
		s.of.hold(digest)
	}
	s.made[digest] = w.info.ContentType
	if w.name != "" {
		s.name[w.name] = digest
	}
}

func (s *Session) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(len(s.made), len(s.name))
}

func isText(text string) bool {
	return len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// isFile reports whether an error is one of the file system. Those of system calls are also
// of connections.
func isFile(err error) bool {
	var atPath *fs.PathError
	var link *os.LinkError
	return errors.As(err, &atPath) || errors.As(err, &link)
}
