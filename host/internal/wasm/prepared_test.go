package wasm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rewriteSum is of what 200 random programs become. A change of it needs another
// RewriteVersion.
const rewriteSum = "5 fcf844d8bfbd6d96"

func TestRewriteVersion(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	for seed := range uint64(200) {
		m, err := Decode(randomProgram(seed, nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(stored(t, m.Prepare(RewriteOptions{Units: 1_000, Depth: 10})))
	}
	if got := fmt.Sprintf("%d %x", RewriteVersion, sum.Sum(nil)[:8]); got != rewriteSum {
		t.Errorf("version and sum are %q, and were %q: modules that hosts have stored are others now; raise RewriteVersion, and write down the sum here", got, rewriteSum)
	}
}

func stored(t *testing.T, p *Prepared) []byte {
	t.Helper()
	out, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPreparedIsStored(t *testing.T) {
	t.Parallel()
	named := section(sectionCustom, append([]byte("\x04name"), "\x01\x05\x01\x01\x02hi"...))
	for name, binary := range map[string][]byte{
		"plain":         shifted(),
		"names":         append(shifted(), named...),
		"custom":        append(shifted(), section(sectionCustom, []byte("\x04mine{\n}"))...),
		"empty custom":  append(shifted(), section(sectionCustom, []byte("\x04mine"))...),
		"data":          withData(active(1, []byte("data")), active(0, nil)),
		"both":          append(append(shifted(), section(sectionCustom, []byte("\x04mineit"))...), named...),
		"random":        randomProgram(7, nil),
		"nothing in it": module(),
	} {
		m, err := Decode(binary, Options{Custom: "mine", CustomSize: 100})
		if err != nil {
			t.Fatal(name, err)
		}
		want := m.Prepare(RewriteOptions{Units: 1_000, Depth: 10})
		got, err := UnmarshalPrepared(stored(t, want))
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Names) bool { return bytes.Equal(a.section, b.section) })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzUnmarshalPrepared(f *testing.F) {
	m, err := Decode(shifted(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	whole, err := m.Prepare(RewriteOptions{}).AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"Module":null}` + "\n"))
	f.Add([]byte(`{"Module":{},"DataLen":1}` + "\nab"))
	f.Add([]byte(`{"Module":{},"DataLen":5}` + "\n\x02\x03abc"))
	f.Add([]byte(`{"Module":{},"CustomLen":9223372036854775807,"NamesLen":2,"HasCustom":true}` + "\nab"))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := UnmarshalPrepared(content)
		if err != nil {
			return
		}
		if len(p.Custom)+len(p.Data)+len(p.Binary) > len(content) {
			t.Error("it has more than was stored")
		}
		_ = p.Data.Lay(t.Context(), make([]byte, 1<<10)) // whatever it is
	})
}
