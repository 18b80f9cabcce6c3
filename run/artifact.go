package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
)

// MaxRecorded is the size in bytes up to which the output of a call is recorded as it is.
// The host stores a larger one as an artifact and records its [StoredOutput].
const MaxRecorded = 4 << 20

// StoredType is the content type of outputs that are stored as artifacts.
const StoredType = "application/json"

const (
	// Names in this order: expressions write objects so, and pass this one on as it is.
	storedHead = `{"$artifact":"`
	storedSize = `","content_type":"` + StoredType + `","size":`
	storedTail = `}`

	digestPrefix = "sha256:"
	digestSize   = len(digestPrefix) + 64
)

// StoredOutput is the JSON that is recorded in place of an output that is stored as an
// artifact.
func StoredOutput(digest string, size int) json.RawMessage {
	return fmt.Appendf(nil, "%s%s%s%d%s", storedHead, digest, storedSize, size, storedTail)
}

// StoredSize returns the size of the output that JSON stands for, and false for JSON that is
// not a [StoredOutput].
func StoredSize(src []byte) (int, bool) {
	rest, ok := bytes.CutPrefix(src, []byte(storedHead))
	if !ok || !beginsWithDigest(rest) {
		return 0, false
	}
	rest, head := bytes.CutPrefix(rest[digestSize:], []byte(storedSize))
	rest, tail := bytes.CutSuffix(rest, []byte(storedTail))
	size, err := strconv.Atoi(string(rest))
	return size, head && tail && err == nil && size >= 0
}

// Expand replaces each [StoredOutput] in JSON by the output that load returns for its digest.
func Expand(src json.RawMessage, load func(digest string) (json.RawMessage, error)) (json.RawMessage, error) {
	var all json.RawMessage
	for rest := src; ; {
		at := bytes.Index(rest, []byte(storedHead))
		if at < 0 {
			return append(all, rest...), nil
		}
		end := bytes.IndexByte(rest[at:], storedTail[0]) // neither a digest nor a size contains it
		if end < 0 {
			return append(all, rest...), nil
		}
		end += at + len(storedTail)
		if _, stored := StoredSize(rest[at:end]); stored {
			digest := rest[at+len(storedHead):][:digestSize]
			output, err := load(string(digest))
			if err != nil {
				return nil, err
			}
			all = append(append(all, rest[:at]...), output...)
		} else {
			all = append(all, rest[:end]...)
		}
		rest = rest[end:]
	}
}

// Digests are all digests that occur in a text, "sha256:" and 64 digits, in its order and
// each as often as it occurs. What a call may open is among those in its input and config.
func Digests(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		eachDigest(text, func(at int) bool { return yield(string(text[at : at+digestSize])) })
	}
}

// ArtifactDigests are those of the artifacts that JSON refers to, {"$artifact": "sha256:…"},
// also within strings that contain JSON.
func ArtifactDigests(src []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		eachDigest(src, func(at int) bool {
			return !follows(src[:at], `$artifact`) || yield(string(src[at:at+digestSize]))
		})
	}
}

func eachDigest(text []byte, do func(at int) bool) {
	for next := 0; ; {
		at := bytes.Index(text[next:], []byte(digestPrefix))
		if at < 0 {
			return
		}
		at += next
		next = at + len(digestPrefix)
		if beginsWithDigest(text[at:]) && !do(at) {
			return
		}
	}
}

func beginsWithDigest(text []byte) bool {
	if len(text) < digestSize || string(text[:len(digestPrefix)]) != digestPrefix {
		return false
	}
	for _, c := range text[len(digestPrefix):digestSize] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// follows reports whether a string that begins after the given JSON is the value of a member
// of that name.
func follows(before []byte, name string) bool {
	for _, mark := range []string{`"`, `:`, `"`} {
		var ok bool
		if before, ok = bytes.CutSuffix(before, []byte(mark)); !ok {
			return false
		}
		before = bytes.TrimRight(before, " \t\r\n\\") // backslashes are of JSON within a string
	}
	return bytes.HasSuffix(before, []byte(name))
}
