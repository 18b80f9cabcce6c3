package hostile

import (
	"fmt"
	"strconv"
	"strings"
)

// largest is what a message may hold, with room for headers.
const largest = 8<<20 - 64<<10

// payload is JSON that is more work than its size tells, by the number of bytes it
// has.
type payload struct {
	name string
	of   func(bytes int) string
}

// payloads is every kind of JSON that a message may carry. Where it is an object it
// has a name, so that filters on that look at it.
func payloads() []payload {
	field := func(value func(n int) string) func(int) string {
		return func(n int) string { return `{"name":"x","value":` + value(n) + `}` }
	}
	list := func(item func(i int) string) func(int) string {
		return field(func(n int) string { return "[" + repeatTo(n, item) + "]" })
	}
	nested := func(open, inside, end string) func(int) string {
		return field(func(n int) string {
			depth := n / (len(open) + len(end))
			return strings.Repeat(open, depth) + inside + strings.Repeat(end, depth)
		})
	}
	return []payload{
		{"digits", field(func(n int) string { return strings.Repeat("7", n) })},
		{"digits after the point", field(func(n int) string { return "0." + strings.Repeat("7", n) })},
		{"zeros, then a digit", field(func(n int) string { return "0." + strings.Repeat("0", n) + "1" })},
		{"large exponent", list(func(i int) string { return fmt.Sprintf("1e%d", 600_000_000+i) })},
		{"small exponent", list(func(i int) string { return fmt.Sprintf("1e-%d", 600_000_000+i) })},
		{"digits and exponent", field(func(n int) string { return strings.Repeat("9", n) + "e-" + strconv.Itoa(n) })},
		{"numbers of 1000 digits", list(func(int) string { return strings.Repeat("3", 1_000) })},
		{"floats", list(func(i int) string { return fmt.Sprintf("%d.%d", i, i%997+1) })},
		{"integers", list(strconv.Itoa)},
		{"empty objects", list(func(int) string { return "{}" })},
		{"objects", list(func(i int) string { return fmt.Sprintf(`{"id":%d,"of":"a%d"}`, i, i%7) })},
		{"objects of many forms", list(func(i int) string { return fmt.Sprintf(`{"k%d":%d}`, i, i) })},
		{"depth of arrays", nested("[", "", "]")},
		{"depth of objects", nested(`{"a":`, "1", "}")},
		{"depth of both", nested(`[{"a":`, "1", "}]")},
		{"keys", func(n int) string {
			return `{"name":"x",` + repeatTo(n, func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) }) + `}`
		}},
		{"the same key", func(n int) string {
			return `{` + repeatTo(n, func(i int) string { return fmt.Sprintf(`"name":"%d"`, i) }) + `}`
		}},
		{"one long key", func(n int) string { return `{"name":"x","` + strings.Repeat("k", n) + `":1}` }},
		{"text", field(func(n int) string { return `"` + strings.Repeat("a", n) + `"` })},
		{"text to be composed", field(func(n int) string { return `"` + strings.Repeat("e\u0301", n/3) + `"` })},
		{"marks to be sorted", field(func(n int) string { return `"a` + strings.Repeat("\u0301\u0323", n/4) + `"` })},
		{"escapes", field(func(n int) string { return `"` + strings.Repeat(`\u00e9`, n/6) + `"` })},
		{"lone surrogates", field(func(n int) string { return `"` + strings.Repeat(`\ud800`, n/6) + `"` })},
		{"no UTF-8", field(func(n int) string { return `"` + strings.Repeat("\xff", n) + `"` })},
		{"spaces", func(n int) string { return strings.Repeat(" ", n) + `{"name":"x"}` }},
		{"open brackets", func(n int) string { return strings.Repeat("[", n) }},
		{"no JSON at the end", field(func(n int) string { return "[" + repeatTo(n, strconv.Itoa) + "}" })},
	}
}

// repeatTo is items with commas between them, of about so many bytes.
func repeatTo(bytes int, item func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes || i == 0; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String()
}
