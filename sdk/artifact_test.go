package sdk_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

// size gives the number of bytes that OpenJSON reads.
func size(ctx sdk.Context, in json.RawMessage) (string, error) {
	r, err := sdk.OpenJSON(ctx, in)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d %x", len(text), sum[:4]), errors.Join(err, r.Close())
}

func TestOpenJSON(t *testing.T) {
	t.Parallel()
	stored := []byte(`"` + strings.Repeat("rows ", 1<<20) + `"`)
	sum := sha256.Sum256(stored)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	reference := func(digest, contentType string) string {
		return fmt.Sprintf(`{"$artifact":%q,"content_type":%q,"size":%d}`, digest, contentType, len(stored))
	}
	text := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return fmt.Sprintf("%d %x", len(s), sum[:4])
	}
	csv := reference(digest, "text/csv")
	outside := &sdktest.Outside{Artifacts: map[string][]byte{digest: stored}}
	for input, want := range map[string]string{
		`[1,2]`:                               text(`[1,2]`),
		`null`:                                text(`null`),
		reference(digest, "application/json"): text(string(stored)),
		csv:                                   text(csv), // a file that the task may open, and no output
	} {
		got := sdktest.Call(t.Context(), size, json.RawMessage(input), sdktest.Options{Outside: outside})
		if got.Failure != nil || got.Value != want {
			t.Errorf("%s: %q, %v; want %q", input, got.Value, got.Failure, want)
		}
	}
	missing := reference("sha256:"+strings.Repeat("0", 64), "application/json")
	if got := sdktest.Call(t.Context(), size, json.RawMessage(missing), sdktest.Options{Outside: outside}); got.Failure == nil || !strings.Contains(fmt.Sprint(got.Failure), "there is no artifact") {
		t.Errorf("a missing artifact: %v", got.Failure)
	}
	if got := sdktest.Call(t.Context(), size, json.RawMessage(missing), sdktest.Options{Outside: &sdktest.Outside{}}); got.Failure == nil || !strings.Contains(fmt.Sprint(got.Failure), "artifacts are not granted") {
		t.Errorf("without the grant: %v", got.Failure)
	}
}

// What is written in pieces of any size is stored and read as it was.
func TestArtifactInPieces(t *testing.T) {
	t.Parallel()
	whole := make([]byte, 5<<20+7)
	for i := range whole {
		whole[i] = byte(i * i >> 5)
	}
	for _, piece := range []int{1000, 1 << 20, 3<<20 + 1, len(whole)} {
		pass := func(ctx sdk.Context, _ struct{}) (bool, error) {
			w, err := ctx.Artifact("pieces")
			if err != nil {
				return false, err
			}
			for rest := whole; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				if _, err := w.Write(rest[:min(piece, len(rest))]); err != nil {
					return false, err
				}
			}
			a, err := w.Commit()
			if err != nil {
				return false, err
			}
			r, err := ctx.OpenArtifact(a)
			if err != nil {
				return false, err
			}
			got, err := io.ReadAll(io.LimitReader(r, 1<<20+5)) // by Read
			var rest bytes.Buffer
			if err == nil {
				_, err = io.Copy(&rest, r) // by WriteTo
			}
			return bytes.Equal(append(got, rest.Bytes()...), whole), errors.Join(err, r.Close())
		}
		got := sdktest.Call(t.Context(), pass, struct{}{}, sdktest.Options{Outside: &sdktest.Outside{Artifacts: map[string][]byte{}}})
		if got.Failure != nil || !got.Value {
			t.Errorf("pieces of %d: %v, %v", piece, got.Value, got.Failure)
		}
	}
}
