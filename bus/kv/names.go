package kv

import (
	"strings"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// Bounds of names, in bytes.
const (
	MaxBucket = 64
	MaxKey    = 1 << 10
)

// CheckBucket reports what is wrong with the name of a bucket, "" for nothing.
func CheckBucket(name string) string {
	switch {
	case name == "":
		return "the name of the bucket is missing"
	case len(name) > MaxBucket:
		return "the name of the bucket is longer than 64 bytes"
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return "the name of the bucket has other characters than a-z, 0-9, _ and -"
		}
	}
	return ""
}

// CheckKey reports what is wrong with a key, "" for nothing: keys are tokens with dots
// between them.
func CheckKey(key string) string {
	if key == "" {
		return "the key is missing"
	}
	if why := checkPrefix(key); why != "" {
		return why
	}
	if strings.HasSuffix(key, ".") {
		return "the key ends with a dot"
	}
	return ""
}

// checkPrefix is CheckKey for the beginning of one.
func checkPrefix(key string) string {
	if len(key) > MaxKey {
		return "the key is longer than 1024 bytes"
	}
	for _, c := range []byte(key) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("-/_=.", c) < 0 {
			return "the key has other characters than letters, digits and - / _ = ."
		}
	}
	if strings.HasPrefix(key, ".") || strings.Contains(key, "..") {
		return "the key begins with a dot or has two in a row"
	}
	return ""
}

// invalid is the fault of a name for which a check gave a reason.
func invalid(kind, why string) *access.Fault {
	if why == "" {
		return nil
	}
	return ops.Invalid("%s failed: %s", kind, why)
}
