// Command reach is a plugin that does what its input says with what is outside.
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdkhttp"
)

func init() {
	sdk.Function("fetch", fetch)
	sdk.Function("http", useHTTP)
	sdk.Function("leak", leak)
	sdk.Function("count", count)
	sdk.Function("publish", publish)
	sdk.Function("artifact", artifact)
	sdk.Function("length", length)
	sdk.Function("rows", rows)
	sdk.Function("sum", sum)
}

func main() {}

type request struct {
	Connection string `json:"connection,omitempty"`
	URL        string `json:"url"`
}

func fetch(ctx sdk.Context, in request) (string, error) {
	r, err := ctx.Fetch(in.Connection, sdk.Request{URL: in.URL})
	if err != nil {
		return "", err
	}
	return string(r.Body), r.OK()
}

// useHTTP does the same by net/http.
func useHTTP(ctx sdk.Context, in request) (string, error) {
	r, err := sdkhttp.Client(ctx, in.Connection).Get(in.URL)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

// leak puts a secret that it was handed, and what the connection's server echoes, wherever it
// can.
func leak(ctx sdk.Context, how string) (map[string]string, error) {
	token, err := ctx.Secret("token")
	if err != nil {
		return nil, err
	}
	out := map[string]string{"plain": token, "base64": base64.StdEncoding.EncodeToString([]byte("x" + token)), "upper": strings.ToUpper(token)}
	ctx.Log().Info("the token is "+token, "field", token)
	fmt.Print("half of " + token[:5])
	fmt.Println(token[5:])
	ctx.Progress(0.5, token)
	r, err := ctx.Fetch("api", sdk.Request{URL: "/echo"})
	if err != nil {
		return nil, err
	}
	out["echo"] = string(r.Body) + fmt.Sprint(r.Header)
	if _, err := ctx.KV("bin").Put("token", []byte(token)); err != nil {
		return nil, err
	}
	if err := ctx.Publish("leaks.token", []byte(token)); err != nil {
		return nil, err
	}
	w, err := ctx.Artifact("token")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(w, token)
	if _, err := w.Commit(); err != nil {
		return nil, err
	}
	switch how {
	case "error":
		return nil, sdk.Fail("leak", "failed with %s", token)
	case "panic":
		panic("panicked with " + token)
	}
	return out, nil
}

// count counts calls in a bucket.
func count(ctx sdk.Context, key string) (int, error) {
	kv := ctx.KV("counters")
	for {
		entry, err := kv.Get(key)
		n := 0
		if err == nil {
			fmt.Sscan(string(entry.Value), &n)
		}
		if _, err = kv.Update(key, fmt.Append(nil, n+1), entry.Revision); err == nil {
			return n + 1, nil
		}
		if !strings.Contains(err.Error(), "revision") && ctx.Err() != nil {
			return 0, err
		}
	}
}

func publish(ctx sdk.Context, subject string) (struct{}, error) {
	return struct{}{}, ctx.Publish(subject, []byte("message of "+ctx.Call().IdempotencyKey))
}

// artifact stores so many bytes.
func artifact(ctx sdk.Context, size int) (sdk.Artifact, error) {
	w, err := ctx.Artifact("zeros")
	if err != nil {
		return sdk.Artifact{}, err
	}
	part := make([]byte, 1<<16)
	for size > 0 {
		n, err := w.Write(part[:min(size, len(part))])
		if err != nil {
			return sdk.Artifact{}, err
		}
		size -= n
	}
	return w.Commit()
}

// length reads an artifact to its end.
func length(ctx sdk.Context, a sdk.Artifact) (int64, error) {
	r, err := ctx.OpenArtifact(a)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}

type row struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// rows returns so many rows of 1 KiB or more.
func rows(_ sdk.Context, n int) ([]row, error) {
	all := make([]row, n)
	for i := range all {
		all[i] = row{i, strings.Repeat("x", 1<<10)}
	}
	return all, nil
}

// sum reads rows as a stream, one after the other. Its first attempt fails in the middle.
func sum(ctx sdk.Context, in json.RawMessage) (int, error) {
	r, err := sdk.OpenJSON(ctx, in)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil {
		return 0, err
	}
	total := 0
	for d.More() {
		var one row
		if err := d.Decode(&one); err != nil {
			return 0, err
		}
		total += one.Number
		if one.Number == 100 && ctx.Call().Attempt == 1 {
			return 0, sdk.Retry(errors.New("not yet"), 0)
		}
	}
	return total, nil
}
