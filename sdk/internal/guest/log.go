package guest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

// logHandler passes records to the host. The JSON of attributes and groups is
// left to slog's own handler: it writes the attributes of a record that is
// otherwise empty, so what it adds on its own is the constant recordPrefix.
type logHandler struct {
	host   Host
	fields slog.Handler // writes to line
	line   *lockedBuffer
}

const recordPrefix = `{"level":"INFO","msg":""`

// lockedBuffer is shared by all handlers that stem from one another.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func newLogHandler(h Host) *logHandler {
	line := new(lockedBuffer)
	return &logHandler{host: h, fields: slog.NewJSONHandler(line, nil), line: line}
}

// Enabled is true for every level: what is kept is the host's decision.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle passes one record on. The host stamps it with the time.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	attrs := slog.NewRecord(time.Time{}, slog.LevelInfo, "", 0)
	r.Attrs(func(a slog.Attr) bool {
		attrs.AddAttrs(a)
		return true
	})
	h.line.mu.Lock()
	defer h.line.mu.Unlock()
	h.line.Reset()
	if err := h.fields.Handle(ctx, attrs); err != nil {
		return err
	}
	h.host.Log(level(r.Level), r.Message, object(h.line.Bytes()))
	return nil
}

// object makes the JSON object of the attributes alone out of a line, in place;
// empty without attributes.
func object(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	rest, cut := bytes.CutPrefix(line, []byte(recordPrefix))
	switch {
	case !cut:
		return line
	case len(rest) == len("}"):
		return nil
	}
	rest[0] = '{' // was the comma after the prefix
	return rest
}

// WithAttrs adds attributes to every record.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{host: h.host, fields: h.fields.WithAttrs(attrs), line: h.line}
}

// WithGroup puts the attributes that follow into a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{host: h.host, fields: h.fields.WithGroup(name), line: h.line}
}

func level(l slog.Level) abi.Level {
	switch {
	case l < slog.LevelInfo:
		return abi.LevelDebug
	case l < slog.LevelWarn:
		return abi.LevelInfo
	case l < slog.LevelError:
		return abi.LevelWarn
	}
	return abi.LevelError
}
