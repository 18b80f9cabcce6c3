package door

import (
	"bytes"
	"cmp"
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

// errnos are the numbers that fit the codes of faults best; EIO fits the others.
var errnos = map[string]abi.Errno{
	access.CodeDenied:      abi.EACCES,
	access.CodeInvalid:     abi.EINVAL,
	access.CodeUnreachable: abi.EHOSTUNREACH,
	access.CodeTimeout:     abi.ETIMEDOUT,
	access.CodeTooLarge:    abi.EFBIG,
	access.CodeConflict:    abi.EEXIST,
	access.CodeNotFound:    abi.ENOENT,
	access.CodeBudget:      abi.ENOSPC,
	access.CodeCanceled:    abi.ECANCELED,
}

// errnoOf is the number of a fault.
func errnoOf(f *access.Fault) abi.Errno { return cmp.Or(errnos[f.Code], abi.EIO) }

func isObject(text []byte) bool {
	return bytes.HasPrefix(text, []byte("{")) && json.Valid(text)
}
