package guest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Operate implements [Host].
func (Imports) Operate(ctx context.Context, kind string, head, body []byte) (Reply, error) {
	return askHost(ctx, kind, head, body)
}

// askHost performs an operation by the host's file for them, on which a goroutine can wait
// while others run: an import that waits would stop all of them.
func askHost(ctx context.Context, kind string, head, body []byte) (Reply, error) {
	door, err := os.OpenFile(abi.DoorFile, os.O_RDWR, 0)
	if err != nil {
		return Reply{}, &abi.Fault{Code: "budget", Message: "no further operation can be started: " + err.Error()}
	}
	defer door.Close()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { door.Close() })()
	}
	reply, err := exchange(door, kind, head, body)
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	return reply, err
}

func exchange(door io.ReadWriter, kind string, head, body []byte) (Reply, error) {
	line := append(append(append(append(make([]byte, 0, len(kind)+len(head)+2), kind...), ' '), head...), '\n')
	for _, part := range [][]byte{line, body} {
		if len(part) == 0 {
			continue
		}
		if _, err := door.Write(part); err != nil {
			return Reply{}, &abi.Fault{Code: "too_large", Message: "sending an operation: " + err.Error()}
		}
	}
	answer := bufio.NewReaderSize(door, 1024)
	first, err := answer.ReadBytes('\n')
	if err != nil {
		return Reply{}, &abi.Fault{Code: "canceled", Message: "reading an answer: " + err.Error()}
	}
	return parseAnswer(first, answer)
}

func parseAnswer(line []byte, rest io.Reader) (Reply, error) {
	word, line, _ := bytes.Cut(line, []byte(" "))
	digits, head, _ := bytes.Cut(line, []byte(" "))
	size, err := strconv.Atoi(string(digits))
	if err != nil {
		return Reply{}, fmt.Errorf("the host's answer: %w", err)
	}
	if string(word) != "ok" {
		return Reply{}, faultOf(head)
	}
	reply := Reply{Head: head, Body: make([]byte, size)}
	if _, err := io.ReadFull(rest, reply.Body); err != nil {
		return Reply{}, fmt.Errorf("reading the answer: %w", err)
	}
	return reply, nil
}
