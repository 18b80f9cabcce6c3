package mask_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/mask"
)

// tokens returns values as services give them out.
func tokens(count int) []string {
	chance := rand.NewChaCha8([32]byte{1})
	all := make([]string, count)
	for i := range all {
		b := make([]byte, 30)
		chance.Read(b) // which cannot fail
		switch i % 3 {
		case 0:
			all[i] = "ghp_" + base64.RawURLEncoding.EncodeToString(b)
		case 1:
			all[i] = hex.EncodeToString(b)
		case 2:
			all[i] = fmt.Sprintf("postgres://user:%x@db-%d.internal:5432/warehouse", b[:12], i)
		}
	}
	return all
}

// logText returns a megabyte of log, one line in a hundred with a secret.
func logText(secrets []string) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `{"time":"2026-11-23T06:12:28.%06dZ","level":"INFO","msg":"order priced","flow":"orders","task":"price","attempt":%d,"total":%d.%02d,"url":"https://example.com/orders/%x"`, i, i%3, i*7%1000, i%100, i*2654435761)
		if i%100 == 0 && len(secrets) > 0 {
			b.WriteString(`,"token":"` + secrets[i/100%len(secrets)] + `"`)
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func BenchmarkBytes(b *testing.B) {
	for _, count := range []int{0, 1, 100, 1000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			values := tokens(count)
			m, text := masker(values...), logText(values)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Bytes(text)
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	values := tokens(100)
	m, text := masker(values...), logText(values)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := m.Writer(io.Discard)
		for part := text; len(part) > 0; part = part[min(1000, len(part)):] {
			if _, err := w.Write(part[:min(1000, len(part))]); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	values := tokens(100)
	m := masker(values...)
	text := []byte("[" + strings.ReplaceAll(strings.TrimSpace(string(logText(values))), "\n", ",") + "]")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.JSON(text)
	}
}

// BenchmarkWorst is text that nearly is a secret everywhere, of secrets that nearly are
// each other.
func BenchmarkWorst(b *testing.B) {
	m := mask.New()
	for i := range 100 {
		m.Add(strings.Repeat("a", 10+i) + "b")
	}
	text := bytes.Repeat([]byte(strings.Repeat("a", 9)+"c"), 1<<20/10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Bytes(text)
	}
}

func BenchmarkAdd(b *testing.B) {
	m := masker(tokens(100)...)
	for i := 0; b.Loop(); i++ {
		m.Add(fmt.Sprintf("value-%d-%d", i, time.Now().UnixNano()))
	}
}
