package sdktest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdkhttp"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

// calls makes a call of a function without input and output.
func calls(t *testing.T, outside *sdktest.Outside, fn func(sdk.Context) error) run.Result {
	t.Helper()
	wrapped := func(ctx sdk.Context, _ struct{}) (struct{}, error) { return struct{}{}, fn(ctx) }
	return sdktest.Call(t.Context(), wrapped, struct{}{}, sdktest.Options{Outside: outside}).Result
}

func TestOutside(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Header.Get("X-Sent"))
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintf(w, `{"method":%q,"path":%q,"body":%q}`, r.Method, r.URL.Path, body)
	})
	o := &sdktest.Outside{
		HTTP:      map[string]http.Handler{"api": api},
		Buckets:   map[string]map[string][]byte{"counters": {"a.b": []byte("1")}},
		Secrets:   map[string]string{"token": "hunter2"},
		Subjects:  func(subject string) bool { return strings.HasPrefix(subject, "orders.") },
		Answer:    func(subject string, data []byte) ([]byte, error) { return []byte(subject + string(data)), nil },
		Artifacts: map[string][]byte{},
	}
	mail := sdk.Mail{To: []string{"a@example.com"}, CC: []string{"b@example.com"}, ReplyTo: "c@example.com", Subject: "s", ContentType: "text/html", Body: []byte("m")}
	must := func(got any, err error, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	is := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	result := calls(t, o, func(ctx sdk.Context) error {
		var answer struct{ Method, Path, Body string }
		r, err := ctx.Fetch("api", sdk.Request{Method: "POST", URL: "/x", Body: []byte("hello"), Header: sdk.Header{"X-Sent": {"1"}}})
		if err != nil {
			return err
		}
		must(r.Header.Get("x-seen"), r.JSON(&answer), "1")
		must(answer.Method+answer.Path+answer.Body, nil, "POST/xhello")

		client := sdkhttp.Client(ctx, "api")
		response, err := client.Post("/y", "text/plain", strings.NewReader("body"))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		must(string(text), err, `{"method":"POST","path":"/y","body":"body"}`)
		_, err = sdkhttp.Client(ctx, "other").Get("/y")
		is(err, sdk.ErrDenied)

		kv := ctx.KV("counters")
		entry, err := kv.Get("a.b")
		must(string(entry.Value), err, "1")
		_, err = kv.Get("none")
		is(err, sdk.ErrNotFound)
		revision, err := kv.Create("new", []byte("2"))
		must(revision > 0, err, true)
		_, err = kv.Create("new", []byte("3"))
		is(err, sdk.ErrConflict)
		_, err = kv.Update("new", []byte("4"), revision)
		must(true, err, true)
		_, err = kv.Update("new", []byte("5"), revision)
		is(err, sdk.ErrConflict)
		keys, err := kv.Keys("", 0)
		must(keys, err, []string{"a.b", "new"})
		must(true, kv.Delete("new"), true)
		_, err = ctx.KV("others").Get("a")
		is(err, sdk.ErrDenied)

		must(true, ctx.Publish("orders.priced", []byte("m")), true)
		is(ctx.Publish("other", nil), sdk.ErrDenied)
		data, err := ctx.Request("price", []byte("?"))
		must(string(data), err, "price?")
		secret, err := ctx.Secret("token")
		must(secret, err, "hunter2")
		_, err = ctx.Secret("other")
		is(err, sdk.ErrDenied)
		ctx.Progress(0.5, "half")
		ctx.Heartbeat()
		must(true, ctx.Mail("mail", mail), true)

		w, err := ctx.Artifact("report.csv")
		if err != nil {
			return err
		}
		large := strings.Repeat("0123456789", 250_000)
		if _, err := io.Copy(w, strings.NewReader(large)); err != nil {
			return err
		}
		a, err := w.Commit()
		must(a.Size, err, int64(len(large)))
		reader, err := ctx.OpenArtifact(a)
		if err != nil {
			return err
		}
		back, err := io.ReadAll(reader)
		must(string(back) == large, err, true)
		is(func() error { _, err := ctx.OpenArtifact(sdk.Artifact{Digest: "sha256:0"}); return err }(), sdk.ErrNotFound)
		return nil
	})
	if result.Failure != nil {
		t.Error(result.Failure)
	}
	if diff := cmp.Diff([]sdk.Message{{Subject: "orders.priced", Data: []byte("m")}}, o.Published); diff != "" {
		t.Error(diff)
	}
	must(o.Progress, nil, []string{"0.5 half"})
	must(o.Heartbeats, nil, 1)
	must(o.Mails, nil, []sdk.Mail{mail})
}

// A function that returns the error of an operation fails as the host has it.
func TestErrorsOfOperations(t *testing.T) {
	t.Parallel()
	result := calls(t, nil, func(ctx sdk.Context) error {
		_, err := ctx.Fetch("api", sdk.Request{URL: "/"})
		return fmt.Errorf("listing repositories: %w", err)
	})
	if result.Outcome != run.OutcomeDenied || !strings.HasPrefix(result.Failure.Message, "listing repositories: http: the test has set no") {
		t.Errorf("%s %v", result.Outcome, result.Failure)
	}
	busy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		http.Error(w, "come back", http.StatusServiceUnavailable)
	})
	result = calls(t, &sdktest.Outside{HTTP: map[string]http.Handler{"": busy}}, func(ctx sdk.Context) error {
		r, err := ctx.Fetch("", sdk.Request{URL: "https://example.com/"})
		if err != nil {
			return err
		}
		return r.OK()
	})
	if f := result.Failure; f == nil || f.Code != "http_503" || !f.Retryable || f.RetryAfter.Seconds() != 3 {
		t.Errorf("%+v", f)
	}
}
