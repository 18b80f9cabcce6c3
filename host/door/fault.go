package door

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/flowhost/flowhost/run/access"
	"github.com/flowhost/flowhost/sdk/abi"
)

// maxText bounds each text of a fault in bytes. They repeat what guests and servers have
// written, and go into logs.
const maxText = 2 << 10

// bounded is a fault with its long texts cut.
func bounded(f *access.Fault) *access.Fault {
	cut := *f
	if f.Inside != nil {
		cut.Inside = bounded(f.Inside)
	}
	for _, text := range []*string{&cut.Code, &cut.Message, &cut.Target, &cut.Rule, &cut.Add, &cut.Detail} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "") + "…"
		}
	}
	return &cut
}

// faultHead is the head of an answer to an operation that was not performed.
func faultHead(f *access.Fault) []byte {
	head, err := json.Marshal(f)
	if err != nil { // it has texts and numbers only
		return []byte(`{"code":"internal","message":"the fault cannot be encoded"}`)
	}
	return head
}

// errnoOf is the number that fits a fault best.
func errnoOf(f *access.Fault) abi.Errno {
	switch f.Code {
	case access.CodeDenied:
		return abi.EACCES
	case access.CodeInvalid:
		return abi.EINVAL
	case access.CodeUnreachable:
		return abi.EHOSTUNREACH
	case access.CodeTimeout:
		return abi.ETIMEDOUT
	case access.CodeTooLarge:
		return abi.EFBIG
	case access.CodeConflict:
		return abi.EEXIST
	case access.CodeNotFound:
		return abi.ENOENT
	case access.CodeBudget:
		return abi.ENOSPC
	case access.CodeCanceled:
		return abi.ECANCELED
	}
	return abi.EIO
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(text, []byte("{")) && json.Valid(text)
}
