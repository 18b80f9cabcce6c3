package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Printable shows control characters as escapes: a guest's text must not do things
// to the terminal.
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

// cut shortens a text to so many characters. Behind what is left of a longer one
// stands how much it was.
func cut(text string, width int) string {
	return cutWith(text, width, "… ("+Size(int64(len(text)))+")")
}

// Fit shortens a text to so many characters.
func Fit(text string, width int) string { return cutWith(text, width, "…") }

// cutWith puts a mark in the place of what is too much of a text.
func cutWith(text string, width int, mark string) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, width-utf8.RuneCountInString(mark))]) + mark
}

// Count is so many of something.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Size is a number of bytes in words.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
