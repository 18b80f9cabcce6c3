package sdktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Outside is what functions under test reach, in memory. What has no entry is denied, as it
// is by a host. It may be shared by calls, and looked at after them.
type Outside struct {
	// HTTP answers the requests of connections, by name; "" is the http grant.
	HTTP map[string]http.Handler

	// SQL is the databases of connections, by name, opened by the test.
	SQL map[string]*sql.DB

	// Buckets are those of KV, by name, with their keys.
	Buckets map[string]map[string][]byte

	// Secrets are those that the flow hands out.
	Secrets map[string]string

	// Subjects reports whether the flow grants to publish to a subject. Default: none.
	Subjects func(subject string) bool

	// Answer answers requests over NATS. Default: nobody does.
	Answer func(subject string, data []byte) ([]byte, error)

	// Published, Mails and Progress are what calls have sent, in order.
	Published []sdk.Message
	Mails     []sdk.Mail
	Progress  []string

	Heartbeats int // how often calls have said that they are alive, beside Progress

	// Artifacts are stored bytes by digest; nil: artifacts are not granted.
	Artifacts map[string][]byte

	mu           sync.Mutex
	revision     uint64
	revisions    map[string]uint64 // by bucket and key
	handles      map[int]*handle
	transactions map[string]*sql.Tx // that are open, by connection
}

// handle is an artifact that is written or read.
type handle struct{ data []byte }

func denied(format string, args ...any) error {
	return &abi.Fault{Code: "denied", Message: fmt.Sprintf(format, args...), Rule: "not granted"}
}

// operate performs an operation.
func (o *Outside) operate(ctx context.Context, kind string, head, body []byte) (guest.Reply, error) {
	if o == nil {
		return guest.Reply{}, denied("%s: the test has set no Options.Outside", kind)
	}
	if kind == "http" {
		return o.fetch(ctx, head, body) // not under the lock: handlers may take long
	}
	if kind == "request" {
		return o.request(head, body)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	first, _, _ := strings.Cut(kind, ".")
	switch first {
	case "kv":
		return o.kv(kind, head, body)
	case "publish":
		return o.publish(head, body)
	case "secret":
		return o.secret(head)
	case "mail":
		return o.mail(head, body)
	case "progress":
		return o.progress(head)
	case "heartbeat":
		o.Heartbeats++
		return replyOf(map[string]any{}, nil)
	case "artifact":
		return o.artifact(kind, head, body)
	case "sql":
		return o.sql(ctx, kind, head)
	}
	return guest.Reply{}, denied("%s: sdktest has no fake for it", kind)
}

func decode(head []byte, v any) error {
	if err := json.Unmarshal(head, v); err != nil {
		return &abi.Fault{Code: "invalid", Message: err.Error()}
	}
	return nil
}

func replyOf(head any, body []byte) (guest.Reply, error) {
	text, err := guest.Encode(head)
	return guest.Reply{Head: text, Body: bytes.Clone(body)}, err
}

func (o *Outside) fetch(ctx context.Context, head, body []byte) (guest.Reply, error) {
	var in struct {
		Connection, Method, URL string
		Headers                 http.Header
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	handler := o.HTTP[in.Connection]
	if handler == nil {
		return guest.Reply{}, denied("connection %q is not granted", in.Connection)
	}
	r, err := http.NewRequestWithContext(ctx, in.Method, in.URL, bytes.NewReader(body))
	if err != nil {
		return guest.Reply{}, &abi.Fault{Code: "invalid", Message: err.Error()}
	}
	r.Header = in.Headers
	if r.Header == nil {
		r.Header = http.Header{}
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	response := recorder.Result()
	return replyOf(map[string]any{"status": response.StatusCode, "headers": response.Header, "url": in.URL}, recorder.Body.Bytes())
}

func (o *Outside) kv(kind string, head, body []byte) (guest.Reply, error) {
	var in struct {
		Bucket, Key, Prefix string
		Revision            *uint64
		Limit               int
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	bucket, granted := o.Buckets[in.Bucket]
	if !granted {
		return guest.Reply{}, denied("bucket %q is not granted", in.Bucket)
	}
	if o.revisions == nil {
		o.revisions = map[string]uint64{}
	}
	name := in.Bucket + "/" + in.Key
	value, exists := bucket[in.Key]
	switch kind {
	case "kv.get":
		if !exists {
			return guest.Reply{}, &abi.Fault{Code: "not_found", Message: fmt.Sprintf("bucket %q has no key %q", in.Bucket, in.Key)}
		}
		return replyOf(map[string]any{"revision": o.revisions[name], "created": time.Unix(0, 0).UTC()}, value)
	case "kv.put":
		if in.Revision != nil && (exists != (*in.Revision > 0) || exists && o.revisions[name] != *in.Revision) {
			return guest.Reply{}, &abi.Fault{Code: "conflict", Message: fmt.Sprintf("key %q of bucket %q has another revision", in.Key, in.Bucket)}
		}
		o.revision++
		bucket[in.Key], o.revisions[name] = bytes.Clone(body), o.revision
		return replyOf(map[string]any{"revision": o.revision}, nil)
	case "kv.delete":
		delete(bucket, in.Key)
		return replyOf(map[string]any{}, nil)
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(bucket)), func(key string) bool { return !strings.HasPrefix(key, in.Prefix) })
	if in.Limit > 0 {
		keys = keys[:min(len(keys), in.Limit)]
	}
	list := []map[string]any{}
	for _, key := range keys {
		list = append(list, map[string]any{"key": key, "revision": o.revisions[in.Bucket+"/"+key]})
	}
	text, err := guest.Encode(list)
	if err != nil {
		return guest.Reply{}, err
	}
	return replyOf(map[string]any{"count": len(keys), "more": false}, text)
}

func (o *Outside) publish(head, body []byte) (guest.Reply, error) {
	var in struct {
		Subject string
		Headers sdk.Header
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	if o.Subjects == nil || !o.Subjects(in.Subject) {
		return guest.Reply{}, denied("subject %q is not granted", in.Subject)
	}
	o.Published = append(o.Published, sdk.Message{Subject: in.Subject, Header: in.Headers, Data: bytes.Clone(body)})
	return replyOf(map[string]any{"stored": false}, nil)
}

func (o *Outside) request(head, body []byte) (guest.Reply, error) {
	var in struct{ Subject string }
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	if o.Answer == nil {
		return guest.Reply{}, denied("requests to %q are not granted", in.Subject)
	}
	answer, err := o.Answer(in.Subject, body)
	if err != nil {
		return guest.Reply{}, err
	}
	return replyOf(map[string]any{}, answer)
}

func (o *Outside) secret(head []byte) (guest.Reply, error) {
	var in struct{ Name string }
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	value, granted := o.Secrets[in.Name]
	if !granted {
		return guest.Reply{}, denied("secret %q is not granted", in.Name)
	}
	return replyOf(map[string]any{}, []byte(value))
}

func (o *Outside) mail(head, body []byte) (guest.Reply, error) {
	var in struct {
		To, CC      []string
		ReplyTo     string `json:"reply_to"`
		Subject     string
		ContentType string `json:"content_type"`
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	o.Mails = append(o.Mails, sdk.Mail{
		To: in.To, CC: in.CC, ReplyTo: in.ReplyTo, Subject: in.Subject, ContentType: in.ContentType, Body: bytes.Clone(body),
	})
	return replyOf(map[string]any{}, nil)
}

func (o *Outside) progress(head []byte) (guest.Reply, error) {
	var in struct {
		Fraction float64
		Message  string
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	o.Progress = append(o.Progress, fmt.Sprintf("%g %s", in.Fraction, in.Message))
	return replyOf(map[string]any{}, nil)
}

func (o *Outside) artifact(kind string, head, body []byte) (guest.Reply, error) {
	var in struct {
		Handle, Length int
		Offset         int64
		Digest         string
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	if o.Artifacts == nil {
		return guest.Reply{}, denied("artifacts are not granted")
	}
	if o.handles == nil {
		o.handles = map[int]*handle{}
	}
	if kind == "artifact.create" || kind == "artifact.open" {
		h := new(handle)
		if kind == "artifact.open" {
			data, exists := o.Artifacts[in.Digest]
			if !exists {
				return guest.Reply{}, &abi.Fault{Code: "not_found", Message: "there is no artifact " + in.Digest}
			}
			h.data = data
		}
		n := len(o.handles) + 1
		o.handles[n] = h
		return replyOf(map[string]any{"handle": n, "size": len(h.data)}, nil)
	}
	h := o.handles[in.Handle]
	if h == nil {
		return guest.Reply{}, &abi.Fault{Code: "invalid", Message: fmt.Sprintf("there is no handle %d", in.Handle)}
	}
	switch kind {
	case "artifact.close":
		delete(o.handles, in.Handle)
		return replyOf(map[string]any{}, nil)
	case "artifact.write":
		h.data = append(h.data, body...)
		return replyOf(map[string]any{"size": len(h.data)}, nil)
	case "artifact.commit":
		sum := sha256.Sum256(h.data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		o.Artifacts[digest] = h.data
		return replyOf(map[string]any{"digest": digest, "size": len(h.data)}, nil)
	}
	from := min(in.Offset, int64(len(h.data)))
	return replyOf(map[string]any{}, h.data[from:min(from+int64(in.Length), int64(len(h.data)))])
}
