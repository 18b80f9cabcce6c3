package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Printable escapes control characters: a guest's output must not control the
// terminal.
func Printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&b, "\\x%02x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cut truncates a string to width characters. A truncated one ends with its full
// size.
func cut(text string, width int) string {
	return cutWith(text, width, "… ("+Size(int64(len(text)))+")")
}

// Fit truncates a string to width characters.
func Fit(text string, width int) string { return cutWith(text, width, "…") }

// cutWith truncates a string and ends it with a mark.
func cutWith(text string, width int, mark string) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, width-utf8.RuneCountInString(mark))]) + mark
}

// Count is a number with its noun, plural if needed.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Size is a number of bytes with its unit.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
