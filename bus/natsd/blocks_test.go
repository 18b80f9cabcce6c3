package natsd

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/flowhost/flowhost/bus"
)

var triggersStream = &mendedStreams[1]

// encode writes a record as the server does.
func (b *block) encode(seq uint64, subject, headers string, body []byte) []byte {
	size := recordMark + len(subject) + len(body)
	if headers != "" {
		size += 4 + len(headers)
	}
	length := uint32(size)
	if headers != "" {
		length |= recordHeaders
	}
	out := binary.LittleEndian.AppendUint32(nil, length)
	out = binary.LittleEndian.AppendUint64(out, seq)
	out = binary.LittleEndian.AppendUint64(out, 1_700_000_000_000_000_000+seq)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(subject)))
	out = append(out, subject...)
	if headers != "" {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(headers)))
		out = append(out, headers...)
	}
	out = append(out, body...)
	b.hash.Reset()
	b.hash.Write(out[4:20])
	b.hash.Write([]byte(subject + headers))
	b.hash.Write(body)
	return b.hash.Sum(out)
}

func testBlock(t testing.TB) *block {
	t.Helper()
	b, err := newBlock(triggersStream, "1.blk")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const orders = bus.PrefixTrigger + "orders"

func TestBlockHoles(t *testing.T) {
	t.Parallel()
	b := testBlock(t)
	header := "NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"
	var text []byte
	var starts []int
	for seq := range uint64(10) {
		starts = append(starts, len(text))
		text = append(text, b.encode(seq+1, orders, header, []byte(`{"n":1}`))...)
	}
	starts = append(starts, len(text))
	for name, tt := range map[string]struct {
		harm          func([]byte) []byte
		first, last   uint64
		before, after uint64 // of the hole, both 0 for none
		torn          bool
	}{
		"none":                 {func(t []byte) []byte { return t }, 1, 10, 0, 0, false},
		"a body":               {func(t []byte) []byte { t[starts[4]-10] ^= 1; return t }, 1, 10, 3, 5, false},
		"the first record":     {func(t []byte) []byte { t[4] ^= 1; return t }, 2, 10, 0, 2, false},
		"a length":             {func(t []byte) []byte { t[starts[2]+1] ^= 1; return t }, 1, 10, 2, 4, false},
		"a subject's length":   {func(t []byte) []byte { t[starts[2]+20] ^= 2; return t }, 1, 10, 2, 4, false},
		"the headers' length":  {func(t []byte) []byte { t[starts[2]+recordHead+len(orders)] ^= 1; return t }, 1, 10, 2, 4, false},
		"three records":        {func(t []byte) []byte { clear(t[starts[2]+5 : starts[4]+9]); return t }, 1, 10, 2, 6, false},
		"the last record":      {func(t []byte) []byte { t[len(t)-1] ^= 1; return t }, 1, 9, 9, 0, false},
		"the last one, cut":    {func(t []byte) []byte { return t[:len(t)-5] }, 1, 9, 9, 0, true},
		"space without record": {func(t []byte) []byte { return append(t, make([]byte, 100)...) }, 1, 10, 10, 0, true},
		"all":                  {func(t []byte) []byte { clear(t); return t }, 0, 0, 0, 0, true},
	} {
		c := b.read(tt.harm(bytes.Clone(text)))
		var h hole
		if len(c.holes) > 0 {
			h = c.holes[0]
		}
		if c.first != tt.first || c.last != tt.last || h.before != tt.before || h.after != tt.after || h.torn != tt.torn || len(c.holes) > 1 {
			t.Errorf("%s: %d to %d, holes %+v", name, c.first, c.last, c.holes)
		}
	}
}

// A body may hold what looks like records: behind a damaged one they must neither take
// the place of what the server stored nor move its sequences.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	b := testBlock(t)
	forged := slicesOf(
		b.encode(1<<61, orders, "", []byte(`"far"`)),
		b.encode(7, orders, "", []byte(`"later"`)),
		b.encode(2, orders, "", []byte(`"again"`)),
		b.encode(1, orders, "", []byte(`"first"`)),
	)
	var text []byte
	for seq := range uint64(5) {
		body := []byte(`{}`)
		if seq == 1 {
			body = bytes.Join(forged, nil)
		}
		text = append(text, b.encode(seq+1, orders, "", body)...)
	}
	text[len(b.encode(1, orders, "", []byte(`{}`)))+1] ^= 0x40 // the length of the second one
	c := b.read(text)
	if c.first != 1 || c.last != 5 {
		t.Errorf("messages %d to %d", c.first, c.last)
	}
	for _, r := range b.search(text, 0, 0) {
		if seq, _ := r.message(); seq > 7 {
			t.Errorf("sequence %d is taken for one of the stream's", seq)
		}
	}
}

func slicesOf(all ...[]byte) [][]byte { return all }

// Searching a damaged file costs a bounded number of hashes, whatever is in it.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	b := testBlock(t)
	text := make([]byte, 1<<20)
	head := b.encode(3, orders, "", nil)[:recordHead+len(orders)]
	for at := 0; at+len(head) < len(text); at += len(head) { // each claims all that follows
		copy(text[at:], head)
		binary.LittleEndian.PutUint32(text[at:], uint32(len(text)-at))
	}
	before := b.hashed
	b.read(text)
	if n := (b.hashed - before) / len(text); n > searchBudget+1 {
		t.Errorf("the file was hashed %d times", n)
	}
}

func FuzzReadBlock(f *testing.F) {
	b := testBlock(f)
	var text []byte
	for seq := range uint64(4) {
		text = append(text, b.encode(seq+1, orders, "NATS/1.0\r\nA: b\r\n\r\n", []byte("{}"))...)
	}
	f.Add(text, 30, byte(4))
	f.Add(append(text, b.encode(3|recordTomb, "", "", nil)...), 200, byte(1))
	f.Fuzz(func(t *testing.T, text []byte, at int, change byte) {
		text = bytes.Clone(text)
		if at >= 0 && at < len(text) {
			text[at] ^= change
		}
		c := testBlock(t).read(text)
		end := 0
		for _, h := range c.holes {
			if h.from < end || h.to <= h.from || h.to > len(text) || h.after > 0 && h.after <= h.before {
				t.Fatalf("hole %+v of %d bytes", h, len(text))
			}
			end = h.to
		}
		if again := testBlock(t).read(without(text, c.holes)); len(again.holes) > 0 || again.last != c.last {
			t.Errorf("%+v is left, up to %d of %d", again.holes, again.last, c.last)
		}
	})
}

func BenchmarkReadBlock(b *testing.B) {
	for _, bench := range []struct {
		name string
		body int
	}{{"250B", 250}, {"4K", 4 << 10}, {"64K", 64 << 10}} {
		blk := testBlock(b)
		body := make([]byte, bench.body)
		for i := range body {
			body[i] = byte(rand.Uint32())
		}
		var text []byte
		for seq := uint64(1); len(text) < 8<<20; seq++ {
			text = append(text, blk.encode(seq, orders, "NATS/1.0\r\nNats-Msg-Id: 123\r\n\r\n", body)...)
		}
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if c := blk.read(text); len(c.holes) > 0 {
					b.Fatal(c.holes)
				}
			}
		})
	}
}
