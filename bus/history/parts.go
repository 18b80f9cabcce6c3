package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// partBytes is the size of a record's parts where the server takes them.
const partBytes = 1 << 20

// Bounds of looking for a part. Between it and its record are only the parts that
// follow it, and what other hosts have published meanwhile.
const (
	partStride = 16 // so many times farther back each time
	partLooks  = 64 // parts of other records until it is given up
)

// wholeRecord is the JSON of a record that is larger than a message, compressed by
// gzip and cut into parts, which are published before the record's message.
type wholeRecord struct {
	id    string // of the parts: theirs is this one, "/" and their number from 1
	parts [][]byte
}

// compress cuts a record into parts of at most size bytes. Parts of different forms
// of a record have different ids, so that none are taken together.
func compress(recordID string, record []byte, size int) (*wholeRecord, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		_, err = zip.Write(record)
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return nil, err
	}
	w := &wholeRecord{id: fmt.Sprintf("%s-%08x", recordID, crc32.ChecksumIEEE(out.Bytes()))}
	w.parts = slices.Collect(slices.Chunk(out.Bytes(), size))
	return w, nil
}

// messages are those of the parts of a record that is published on the subject.
func (w *wholeRecord) messages(subject string) []*nats.Msg {
	all := make([]*nats.Msg, len(w.parts))
	for i, part := range w.parts {
		all[i] = &nats.Msg{
			Subject: bus.HistoryPartSubject(subject, i+1), Data: part,
			Header: nats.Header{jetstream.MsgIDHeader: {partID(w.id, i+1)}},
		}
	}
	return all
}

// header names the parts in the record's message.
func (w *wholeRecord) header() string { return partID(w.id, len(w.parts)) }

func partID(id string, number int) string { return id + "/" + strconv.Itoa(number) }

// decode reads the record.
func (w *wholeRecord) decode(id run.ID) (*run.Record, error) {
	body, err := w.inflate()
	if err != nil {
		return nil, fmt.Errorf("record of run %s: %w", id, err)
	}
	return decodeRecord(id, body)
}

// inflate gives the JSON of the record.
func (w *wholeRecord) inflate() ([]byte, error) {
	readers := make([]io.Reader, len(w.parts))
	for i, part := range w.parts {
		readers[i] = bytes.NewReader(part)
	}
	zip, err := gzip.NewReader(io.MultiReader(readers...))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zip)
}

// loadWhole gives the record whose message names parts; nil when they are gone or
// damaged.
func (h *Store) loadWhole(ctx context.Context, id run.ID, msg *jetstream.RawStreamMsg) (*run.Record, error) {
	if err := h.reading.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer h.reading.Release(1)
	whole, err := h.whole(ctx, msg)
	if err != nil {
		return nil, fmt.Errorf("parts of the record of run %s: %w", id, err)
	}
	if whole == nil {
		return nil, nil
	}
	record, err := whole.decode(id)
	if err != nil {
		h.log.Error("the parts of a record are damaged: it is given as its message has it", "error", err)
		return nil, nil
	}
	return record, nil
}

// whole reads the parts that a record's message names. It is nil when there are
// none, or not all of them any more.
func (h *Store) whole(ctx context.Context, msg *jetstream.RawStreamMsg) (*wholeRecord, error) {
	id, last, _ := strings.Cut(msg.Header.Get(bus.HeaderParts), "/")
	number, err := strconv.Atoi(last)
	if err != nil {
		return nil, nil
	}
	w := &wholeRecord{id: id}
	for i := range number {
		part, err := h.part(ctx, msg, partID(id, i+1), i+1, number-i)
		if part == nil || err != nil {
			return nil, err
		}
		w.parts = append(w.parts, part)
	}
	return w, nil
}

// part looks for a part of a record, back from the record's message, where it is at
// least so many messages before it. It is nil when the stream does not have it.
func (h *Store) part(ctx context.Context, msg *jetstream.RawStreamMsg, id string, number, before int) ([]byte, error) {
	subject := bus.HistoryPartSubject(msg.Subject, number)
	looks := 0
	for end, stride := msg.Sequence, uint64(before); end > 1; stride *= partStride {
		begin := max(end, stride+1) - stride
		for seq := begin; seq < end; looks++ {
			found, err := h.MessageFrom(ctx, seq, subject)
			switch {
			case err != nil || looks >= partLooks:
				return nil, err
			case found == nil || found.Sequence >= end:
				seq = end
			case found.Header.Get(jetstream.MsgIDHeader) == id:
				return found.Data, nil
			default:
				seq = found.Sequence + 1
			}
		}
		end = begin
	}
	return nil, nil
}

// MessageFrom gives the first message of a subject at or after a place, nil when
// there is none.
func (h *Store) MessageFrom(ctx context.Context, seq uint64, subject string) (*jetstream.RawStreamMsg, error) {
	msg, err := h.message(ctx, seq, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}
