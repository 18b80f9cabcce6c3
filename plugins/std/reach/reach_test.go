//go:build !wasip1

package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/flowhost/flowhost/sdk/sdktest"
)

// want calls a function with input as JSON and compares its output as JSON, or the beginning of
// the code and the message of its failure.
func want(t *testing.T, outside *sdktest.Outside, function, input, output string) {
	t.Helper()
	r := sdktest.Invoke(t.Context(), function, json.RawMessage(input), sdktest.Options{Outside: outside})
	got := string(r.Output)
	if r.Failure != nil {
		got = fmt.Sprintf("%s, retryable %t: %s", r.Failure.Code, r.Failure.Retryable, r.Failure.Message)
	}
	if got != output && (r.Failure == nil || !strings.HasPrefix(got, output)) {
		t.Errorf("%s %s:\n got %s\nwant %s", function, input, got, output)
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	api := http.NewServeMux()
	api.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, `{"q":%q,"token":%q}`, r.URL.RawQuery, r.Header.Get("X-Token"))
	})
	api.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, body["id"])
	})
	api.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		http.Error(w, "later", http.StatusTooManyRequests)
	})
	api.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xff, 0xfe}) })
	outside := &sdktest.Outside{HTTP: map[string]http.Handler{"api": api}}
	for _, c := range []struct{ input, body string }{
		{`{"connection":"api","url":"/orders?a=1","query":{"n":2,"tag":["x","y z"]},"headers":{"X-Token":"t"}}`, `"body":{"q":"a=1&n=2&tag=x&tag=y+z","token":"t"}`},
		{`{"connection":"api","url":"/orders","as":"text"}`, `"body":"{\"q\":\"\",\"token\":\"\"}"`},
		{`{"connection":"api","url":"/orders","json":{"id":"o-1"}}`, `"body":"o-1"`},
		{`{"connection":"api","url":"/bytes"}`, `"body":"//4="`},
		{`{"connection":"api","url":"/busy","expect":[429]}`, `"body":"later\n"`},
	} {
		r := sdktest.Invoke(t.Context(), "http.request", json.RawMessage(c.input), sdktest.Options{Outside: outside})
		if r.Failure != nil || !strings.Contains(string(r.Output), c.body) {
			t.Errorf("%s:\n got %s %v\nwant %s", c.input, r.Output, r.Failure, c.body)
		}
	}
	want(t, outside, "http.request", `{"connection":"api","url":"/busy"}`, "http_429, retryable true: ")
	want(t, outside, "http.request", `{"connection":"api","url":"/nowhere"}`, "http_404, retryable false: ")
	want(t, outside, "http.request", `{"connection":"api","url":"/orders","expect":[201]}`, "unexpected_status, retryable false: ")
	want(t, outside, "http.request", `{"connection":"api","url":"/bytes","as":"json"}`, "not_json, retryable false: ")
	want(t, outside, "http.request", `{"connection":"nobody","url":"/"}`, "denied, retryable false: ")
	for _, wrong := range []string{`"timeout":"soon"`, `"as":"xml"`, `"json":1,"body":"x"`, `"query":{"a":{}}`} {
		want(t, outside, "http.request", `{"connection":"api","url":"/orders",`+wrong+`}`, "input, retryable false: ")
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	api := http.NewServeMux()
	api.HandleFunc("/linked", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "" {
			w.Header().Set("Link", `</linked?page=0>; rel="first", </linked?page=2>; rel="next"`)
			fmt.Fprint(w, `[1,2]`)
			return
		}
		fmt.Fprint(w, `[3]`)
	})
	api.HandleFunc("/after", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "size=2":
			fmt.Fprint(w, `{"data":{"items":[1,2]},"next":"x"}`)
		case "after=x&size=2":
			fmt.Fprint(w, `{"data":{"items":[3]},"next":null}`)
		default:
			http.Error(w, r.URL.RawQuery, http.StatusBadRequest)
		}
	})
	api.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[1],"next":"/endless"}`)
	})
	outside := &sdktest.Outside{HTTP: map[string]http.Handler{"api": api}}
	want(t, outside, "http.pages", `{"connection":"api","url":"/linked"}`, `{"items":[1,2,3],"pages":2,"truncated":false}`)
	want(t, outside, "http.pages", `{"connection":"api","url":"/after","query":{"size":2},"items":"data.items","next":"next","parameter":"after"}`, `{"items":[1,2,3],"pages":2,"truncated":false}`)
	want(t, outside, "http.pages", `{"connection":"api","url":"/endless","items":"items","next":"next","max_pages":3}`, `{"items":[1,1,1],"pages":3,"truncated":true}`)
	want(t, outside, "http.pages", `{"connection":"api","url":"/endless","items":"items","next":"next","max_items":2}`, `{"items":[1,1],"pages":3,"truncated":true}`)
	want(t, outside, "http.pages", `{"connection":"api","url":"/endless","items":"nothing"}`, "not_a_list, retryable false: ")
	want(t, outside, "http.pages", `{"connection":"api","url":"/nowhere"}`, "http_404, retryable false: page 1: ")
}

func TestSQL(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	outside := &sdktest.Outside{SQL: map[string]*sql.DB{"db": db}}
	want(t, outside, "sql.execute", `{"connection":"db","sql":"CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, big INTEGER)"}`, `{"rows":0}`)
	want(t, outside, "sql.insert", `{"connection":"db","table":"t","rows":[{"id":1,"name":"a","big":9007199254740993},{"id":2,"name":null,"big":2}]}`, `{"rows":2}`)
	want(t, outside, "sql.query", `{"connection":"db","sql":"SELECT id, big FROM t WHERE big = $1","args":[9007199254740993]}`, `{"columns":["id","big"],"rows":[{"big":9007199254740993,"id":1}],"truncated":false}`)
	want(t, outside, "sql.insert", `{"connection":"db","table":"t","rows":[{"id":2,"name":"b","big":3}],"key":["id"]}`, `{"rows":1}`)
	want(t, outside, "sql.query", `{"connection":"db","sql":"SELECT name FROM t ORDER BY id","max_rows":1}`, `{"columns":["name"],"rows":[{"name":"a"}],"truncated":true}`)
	want(t, outside, "sql.query", `{"connection":"db","sql":"SELECT name FROM t WHERE id = 2"}`, `{"columns":["name"],"rows":[{"name":"b"}],"truncated":false}`)
	want(t, outside, "sql.insert", `{"connection":"db","table":"t","rows":[]}`, `{"rows":0}`)
	for _, wrong := range []string{
		`"table":"t; DROP TABLE t","rows":[{"id":1}]`, `"table":"t","rows":[{"id\"":1}]`, `"table":"t","rows":[{"id":1},{"id":2,"x":1}]`,
		`"table":"t","rows":[{"id":[1]}]`, `"table":"t","rows":[{"id":1}],"key":["other"]`, `"table":"t","rows":[{"id":1}],"dialect":"oracle"`,
	} {
		want(t, outside, "sql.insert", `{"connection":"db",`+wrong+`}`, "input, retryable false: ")
	}
}

func TestInsertStatements(t *testing.T) {
	t.Parallel()
	in := &Insert{Table: "shop.orders", Columns: []string{"id", "total"}, Key: []string{"id"}}
	for text, d := range map[string]dialect{
		`INSERT INTO "shop"."orders" ("id", "total") VALUES ($1, $2), ($3, $4) ON CONFLICT ("id") DO UPDATE SET "total" = excluded."total"`: {},
		"INSERT INTO `shop`.`orders` (`id`, `total`) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE `total` = VALUES(`total`)":               {mysql: true},
	} {
		if got := d.insert(in, 2); got != text {
			t.Errorf("\n got %s\nwant %s", got, text)
		}
	}
}

func TestKV(t *testing.T) {
	t.Parallel()
	outside := &sdktest.Outside{Buckets: map[string]map[string][]byte{"b": {"text": []byte("no JSON")}}}
	want(t, outside, "kv.get", `{"bucket":"b","key":"none"}`, `{"found":false,"value":null,"revision":0}`)
	want(t, outside, "kv.count", `{"bucket":"b","key":"n"}`, `{"value":1}`)
	want(t, outside, "kv.count", `{"bucket":"b","key":"n","by":41}`, `{"value":42}`)
	want(t, outside, "kv.count", `{"bucket":"b","key":"text"}`, "not_a_number, retryable false: ")
	want(t, outside, "kv.put", `{"bucket":"b","key":"n","value":1,"revision":0}`, "conflict, retryable")
	want(t, outside, "kv.put", `{"bucket":"b","key":"n","value":1,"ttl":"soon"}`, "input, retryable false: ")
	want(t, outside, "kv.list", `{"bucket":"b"}`, `["n","text"]`)
	want(t, outside, "kv.delete", `{"bucket":"b","key":"n"}`, `{}`)
	want(t, outside, "kv.list", `{"bucket":"b","prefix":"n"}`, `[]`)
	want(t, outside, "kv.get", `{"bucket":"other","key":"n"}`, "denied, retryable false: ")
	r := sdktest.Invoke(t.Context(), "kv.get", json.RawMessage(`{"bucket":"b","key":"text"}`), sdktest.Options{Outside: outside})
	if !strings.HasPrefix(string(r.Output), `{"found":true,"value":"no JSON"`) {
		t.Errorf("%s %v", r.Output, r.Failure)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	var posted []byte
	outside := &sdktest.Outside{
		Subjects: func(subject string) bool { return strings.HasPrefix(subject, "orders.") },
		Answer:   func(_ string, data []byte) ([]byte, error) { return append([]byte("echo "), data...), nil },
		HTTP: map[string]http.Handler{"chat": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body := json.RawMessage{}
			_ = json.NewDecoder(r.Body).Decode(&body)
			posted = body
		})},
	}
	want(t, outside, "message.publish", `{"subject":"orders.new","data":{"id":1}}`, `{}`)
	want(t, outside, "message.publish", `{"subject":"other","data":"x"}`, "denied, retryable false: ")
	want(t, outside, "message.request", `{"subject":"orders.price","data":"x"}`, `"echo x"`)
	if len(outside.Published) != 1 || string(outside.Published[0].Data) != `{"id":1}` {
		t.Errorf("%+v", outside.Published)
	}
	want(t, outside, "mail.send", `{"connection":"mail","to":["a@example.com"],"subject":"s","text":"t","html":"h"}`, "input, retryable false: ")
	want(t, outside, "mail.send", `{"connection":"mail","to":["a@example.com"],"subject":"s","html":"<b>"}`, `{}`)
	if len(outside.Mails) != 1 || outside.Mails[0].ContentType != "text/html; charset=utf-8" || string(outside.Mails[0].Body) != "<b>" {
		t.Errorf("%+v", outside.Mails)
	}
	want(t, outside, "webhook.slack", `{"connection":"chat","text":"hello"}`, `{}`)
	if string(posted) != `{"text":"hello"}` {
		t.Errorf("%s", posted)
	}
	want(t, outside, "webhook.post", `{"json":1}`, "input, retryable false: ")
}
