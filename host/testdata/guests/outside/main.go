// Command outside is a plugin whose functions reach outside, by the SDK and by the imports.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/flowhost/flowhost/sdk"
)

//go:wasmimport flowhost:task/v1 op_start
func opStart(kind unsafe.Pointer, kindLen int32, head unsafe.Pointer, headLen int32, body unsafe.Pointer, bodyLen int32) int32

//go:wasmimport flowhost:task/v1 op_wait
func opWait(tickets unsafe.Pointer, count, timeout int32) int32

//go:wasmimport flowhost:task/v1 op_read
func opRead(ticket, part, offset int32, ptr unsafe.Pointer, length int32) int32

//go:wasmimport flowhost:task/v1 op_close
func opClose(ticket int32) int32

func init() {
	sdk.Function("fetch", fetch)
	sdk.Function("several", several)
	sdk.Function("sequence", sequence)
	sdk.Function("goroutines", goroutines)
	sdk.Function("unread", unread)
	sdk.Function("imports", imports)
	sdk.Function("wrong", wrong)
	sdk.Function("flood", flood)
	sdk.Function("forever", forever)
	sdk.Function("beats", beats)
	sdk.Function("files", files)
	sdk.Function("tidies", tidies)
	sdk.Function("world", world)
	sdk.Function("polls", polls)
}

func main() {}

// fetch gives the status and the body of a response.
func fetch(ctx sdk.Context, url string) (string, error) {
	r, err := ctx.Fetch("api", sdk.Request{URL: url})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s %s", r.Status, r.Header.Get("x-a"), r.Body), nil
}

// sequence makes so many requests one after the other.
func sequence(ctx sdk.Context, n int) (int, error) {
	for i := range n {
		if _, err := ctx.Fetch("api", sdk.Request{URL: "/x"}); err != nil {
			return i, err
		}
	}
	return n, nil
}

// several has so many requests under way at once.
func several(ctx sdk.Context, n int) ([]string, error) {
	answers, failures := make([]string, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i], failures[i] = fetch(ctx, fmt.Sprint("/", i)) })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// goroutines counts while a request is under way, until it has ended.
func goroutines(ctx sdk.Context, _ struct{}) (bool, error) {
	done := make(chan error)
	go func() {
		_, err := fetch(ctx, "/slow")
		done <- err
	}()
	for n := 0; ; n++ {
		select {
		case err := <-done:
			return n > 0, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// unread leaves operations behind.
func unread(ctx sdk.Context, n int) (struct{}, error) {
	for range n {
		start("http", `{"url":"/never"}`, "")
	}
	return struct{}{}, nil
}

func ptr(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

func start(kind, head, body string) int32 {
	return opStart(ptr(kind), int32(len(kind)), ptr(head), int32(len(head)), ptr(body), int32(len(body)))
}

func wait(timeout int32, tickets ...int32) int32 {
	return opWait(unsafe.Pointer(unsafe.SliceData(tickets)), int32(len(tickets)), timeout)
}

func part(ticket, n int32) string {
	size := opRead(ticket, n, 0, nil, 0)
	if size <= 0 {
		return fmt.Sprint(size)
	}
	out := make([]byte, size)
	for at := int32(0); at < size; {
		at += opRead(ticket, n, at, unsafe.Pointer(&out[at]), 3)
	}
	return string(out)
}

// imports does one operation by the imports and gives everything that they return.
func imports(_ sdk.Context, head json.RawMessage) ([]any, error) {
	ticket := start("http", string(head), "body")
	pending := opRead(ticket, 0, 0, nil, 0)
	index := wait(-1, ticket)
	out := []any{ticket, pending, index, part(ticket, 0), part(ticket, 1), opClose(ticket), opClose(ticket)}
	return out, nil
}

// wrong gives what the imports answer to requests that are wrong.
func wrong(_ sdk.Context, _ struct{}) (map[string]int32, error) {
	good := start("http", `{"url":"/never"}`, "")
	far := unsafe.Pointer(^uintptr(0) - 8)
	big := string(make([]byte, 300<<10))
	return map[string]int32{
		"no kind":            start("", `{}`, ""),
		"long kind":          start(big[:33], `{}`, ""),
		"head is no object":  start("http", `[]`, ""),
		"head is no JSON":    start("http", `{`, ""),
		"large head":         start("http", `{"a":"`+big+`"}`, ""),
		"body too large":     opStart(ptr("http"), 4, ptr("{}"), 2, ptr("{}"), 17<<20),
		"kind beside":        opStart(far, 32, ptr("{}"), 2, nil, 0),
		"head beside":        opStart(ptr("http"), 4, far, 100, nil, 0),
		"body beside":        opStart(ptr("http"), 4, ptr("{}"), 2, far, 100),
		"wait for nothing":   opWait(nil, 0, 0),
		"wait for many":      opWait(nil, 65, 0),
		"wait beside":        opWait(far, 64, 0),
		"wait for another":   wait(-1, good, good+1),
		"wait, not ended":    wait(0, good),
		"read another":       opRead(good+1, 0, 0, nil, 0),
		"read negative":      opRead(-1, 0, 0, nil, 0),
		"read, not ended":    opRead(good, 0, 0, nil, 0),
		"close another":      opClose(0),
		"close, not ended":   opClose(good),
		"close again":        opClose(good),
		"read what is ended": readEnded(),
	}, nil
}

func readEnded() int32 {
	ticket := start("http", `{"url":"/x"}`, "")
	wait(-1, ticket)
	for _, bad := range []int32{opRead(ticket, 2, 0, nil, 0), opRead(ticket, 0, 1<<20, nil, 0), opRead(ticket, 0, 0, unsafe.Pointer(^uintptr(0)-1), 4)} {
		if bad != -28 {
			return bad
		}
	}
	return 0
}

// flood starts so many operations, closes each if asked to, and gives how many were
// started and what the first refusal was.
func flood(_ sdk.Context, in struct {
	N     int
	Close bool
	Body  int
}) ([2]int32, error) {
	body := string(make([]byte, in.Body))
	for i := range in.N {
		ticket := start("http", `{"url":"/x"}`, body)
		if ticket < 0 {
			return [2]int32{int32(i), ticket}, nil
		}
		if in.Close {
			wait(-1, ticket)
			opClose(ticket)
		}
	}
	return [2]int32{int32(in.N), 0}, nil
}

var computed int

// beats says so many times that it is alive.
func beats(ctx sdk.Context, n int) (int, error) {
	for range n {
		ctx.Heartbeat()
	}
	return n, nil
}

// forever waits for an operation that does not end, or computes.
func forever(ctx sdk.Context, how string) (string, error) {
	switch how {
	case "import":
		return fmt.Sprint(wait(-1, start("http", `{"url":"/never"}`, ""))), nil
	case "computing":
		for {
			computed++
		}
	case "context":
		child, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_ = child
	}
	return fetch(ctx, "/never")
}

// tidies is canceled while it waits, and then tidies up.
func tidies(ctx sdk.Context, _ struct{}) (string, error) {
	_, err := fetch(ctx, "/never")
	text, after := fetch(ctx, "/slow")
	return "", fmt.Errorf("%v, then %s %v", err, text, after)
}

// world is what a guest sees of time and chance.
func world(_ sdk.Context, _ struct{}) (out struct {
	Now    time.Time
	Random string
}, err error) {
	out.Now, out.Random = time.Now().UTC(), rand.Text()
	return out, nil
}

// files speaks to the file of operations as a language without imports does.
func files(_ sdk.Context, requests []string) ([]string, error) {
	var out []string
	for _, request := range requests {
		f, err := os.OpenFile("/.door", os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if _, err := f.WriteString(request); err != nil {
			out = append(out, "write: "+err.Error())
		}
		answer := make([]byte, 1<<16)
		n := 0
		for {
			more, err := f.Read(answer[n:])
			n += more
			if err != nil || more == 0 {
				break
			}
		}
		out = append(out, string(answer[:n]))
		f.Close()
	}
	return out, nil
}

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
func pollOneoff(in, out unsafe.Pointer, n int32, events unsafe.Pointer) int32

// polls waits for operations of so many files with so many subscriptions each, and gives how
// many have ended and the error number.
func polls(_ sdk.Context, in struct{ Files, Each int }) ([2]int32, error) {
	var subscriptions []byte
	for range in.Files {
		f, err := os.OpenFile("/.door", os.O_RDWR, 0)
		if err != nil {
			return [2]int32{-1}, nil // there are enough
		}
		if _, err := f.WriteString(`http {"url":"/x"}`); err != nil {
			return [2]int32{}, err
		}
		subscription := make([]byte, 48)
		subscription[8] = 1 // fd_read
		fd := uint32(f.Fd())
		for i := range 4 {
			subscription[16+i] = byte(fd >> (8 * i))
		}
		for range in.Each {
			subscriptions = append(subscriptions, subscription...)
		}
	}
	n := len(subscriptions) / 48
	events := make([]byte, 32*n)
	var ended int32
	errno := pollOneoff(unsafe.Pointer(unsafe.SliceData(subscriptions)), unsafe.Pointer(unsafe.SliceData(events)), int32(n), unsafe.Pointer(&ended))
	return [2]int32{ended, errno}, nil
}
