// Command bulk is a plugin that writes and reads artifacts of any size.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"

	"github.com/flowhost/flowhost/sdk"
)

func init() {
	sdk.Function("write", write)
	sdk.Function("read", read)
	sdk.Function("hash", hash)
	sdk.Function("compute", compute)
}

func main() {}

// write stores so many MiB, each of which has its number in every block of 4 KiB.
func write(ctx sdk.Context, mib int) (sdk.Artifact, error) {
	w, err := ctx.Artifact("bulk")
	if err != nil {
		return sdk.Artifact{}, err
	}
	defer w.Close()
	part := make([]byte, 1<<20)
	for i := range part {
		part[i] = byte(i * i >> 3)
	}
	for number := range mib {
		for at := 0; at < len(part); at += 4 << 10 {
			binary.LittleEndian.PutUint64(part[at:], uint64(number))
		}
		if _, err := w.Write(part); err != nil {
			return sdk.Artifact{}, err
		}
	}
	return w.Commit()
}

// read reads an artifact to its end.
func read(ctx sdk.Context, a sdk.Artifact) (int64, error) { return copyTo(ctx, a, io.Discard) }

// hash gives the digest of the bytes that it reads.
func hash(ctx sdk.Context, a sdk.Artifact) (string, error) {
	sum := sha256.New()
	if _, err := copyTo(ctx, a, sum); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

func copyTo(ctx sdk.Context, a sdk.Artifact, w io.Writer) (int64, error) {
	r, err := ctx.OpenArtifact(a)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(w, r)
}

// compute hashes so many MiB of its own, for comparison.
func compute(_ sdk.Context, mib int) (struct{}, error) {
	sum, part := sha256.New(), make([]byte, 1<<20)
	for range mib {
		sum.Write(part)
	}
	return struct{}{}, nil
}
