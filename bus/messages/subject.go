package messages

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// MaxSubject is the size in bytes of the longest subject.
const MaxSubject = 256

// CheckSubject reports what is wrong with the subject of a message, "" for nothing. No grant
// opens a subject that it refuses.
func CheckSubject(subject string) string {
	switch {
	case subject == "":
		return "the subject is missing"
	case len(subject) > MaxSubject:
		return "the subject is longer than 256 bytes"
	case strings.ContainsFunc(subject, invisible):
		return "the subject has a space, a character that is not visible, or is not UTF-8"
	}
	for token := range strings.SplitSeq(subject, ".") {
		switch token {
		case "":
			return "the subject has an empty token"
		case "*", ">":
			return "the subject has a wildcard, and a message has one subject"
		}
	}
	if strings.ContainsAny(subject, "*>") {
		return "the subject has a wildcard character"
	}
	if run.ReservedSubject(subject) != "" {
		return `subjects that begin with "$", "_" or "fh." belong to the NATS server, to its clients and to flowhost`
	}
	return ""
}

// invisible also reports what stands for bytes that are not UTF-8.
func invisible(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == utf8.RuneError
}

// Matches reports whether a pattern includes a subject: * is any one token, and > at the end
// is all that follow, at least one. A pattern that is not well-formed includes nothing.
func Matches(pattern, subject string) bool {
	for {
		p, patternLeft, patternMore := strings.Cut(pattern, ".")
		s, subjectLeft, subjectMore := strings.Cut(subject, ".")
		switch {
		case p == "" || s == "":
			return false
		case p == ">":
			return !patternMore && literal(subject)
		case p != "*" && p != s, s == "*" || s == ">":
			return false
		case !patternMore || !subjectMore:
			return patternMore == subjectMore
		}
		pattern, subject = patternLeft, subjectLeft
	}
}

// literal reports whether tokens are neither empty nor wildcards.
func literal(subject string) bool {
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || token == "*" || token == ">" {
			return false
		}
	}
	return true
}

// check holds the subject of an operation against the patterns of the grant and of the
// operator.
func check(kind, subject string, policy access.Policy) *access.Fault {
	if why := CheckSubject(subject); why != "" {
		return ops.Invalid("%s failed: %s", kind, why)
	}
	granted, allow := policy.Grants.Publish, policy.Allow
	if kind == access.KindRequest {
		granted = policy.Grants.Request
	}
	target, add := kind+" "+subject, kind+" = ["+quoted.Replace(strconv.Quote(subject))+"]"
	if !includes(granted, subject) {
		return ops.NotGranted(target, add)
	}
	if allow == nil {
		return nil
	}
	allowed := allow.Publish
	if kind == access.KindRequest {
		allowed = allow.Request
	}
	if !includes(allowed, subject) {
		return ops.NotAllowed(target, add, allow)
	}
	return nil
}

// quoted makes a Go string one of HCL, which has templates in it.
var quoted = strings.NewReplacer("${", "$${", "%{", "%%{")

// includes reports whether one of the patterns includes a subject.
func includes(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Matches(pattern, subject) })
}
