package httpreach_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/flowhost/flowhost/run/access"
)

// BenchmarkGet compares a GET through Do with the same one by net/http.
func BenchmarkGet(b *testing.B) {
	body := make([]byte, 4<<10)
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
	b.Run("native", func(b *testing.B) {
		s, _ := serve(b, "127.0.0.1:0", handler)
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			response, err := client.Get(s.URL)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
	b.Run("grant", func(b *testing.B) {
		r := newRig(b, handler)
		b.ReportAllocs()
		for b.Loop() {
			if answer := r.get(r.origin() + "/"); answer.Fault != nil {
				b.Fatal(answer.Fault)
			}
		}
	})
	b.Run("connection", func(b *testing.B) {
		r := newRig(b, handler)
		r.secrets["key"] = secretValue
		c := r.connection()
		c.HTTP.Auth = &access.Auth{Kind: access.AuthBearer, Token: access.Value{Secret: "key"}}
		b.ReportAllocs()
		for b.Loop() {
			if answer := r.do(c, fields{"url": "/"}, ""); answer.Fault != nil {
				b.Fatal(answer.Fault)
			}
		}
	})
	b.Run("denied", func(b *testing.B) {
		r := newRig(b, handler)
		b.ReportAllocs()
		for b.Loop() {
			if answer := r.get("http://other.example.com/"); answer.Fault == nil {
				b.Fatal("allowed")
			}
		}
	})
}
