package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
)

// streamIndexFile is the server's index of a stream's files. It is written from time to
// time, and when the server stops.
const streamIndexFile = "index.db"

// streamIndex is what a server last noted about a stream.
type streamIndex struct {
	first, last uint64 // sequences; first is above last when there were no messages
}

// readStreamIndex reads the index beside the files of a stream. One that is not there,
// or is damaged, counts as empty: the server does without it, too.
//
// It is magic 1 | version 1 | numbers of variable length: messages, bytes, first
// sequence, its time, last sequence | … | hash 8. Source: nats-server v2.15.2,
// server/filestore.go, recoverFullState.
func readStreamIndex(folder, stream string) streamIndex {
	nothing := streamIndex{first: 1}
	text, err := os.ReadFile(filepath.Join(folder, streamIndexFile))
	if err != nil || len(text) < 2+highwayhash.Size64 {
		return nothing
	}
	key := sha256.Sum256([]byte(stream))
	digest, err := highwayhash.New64(key[:])
	if err != nil {
		return nothing
	}
	text, sum := text[:len(text)-highwayhash.Size64], text[len(text)-highwayhash.Size64:]
	digest.Write(text)
	if !bytes.Equal(digest.Sum(nil), sum) {
		return nothing
	}
	var numbers [5]uint64
	rest := text[2:]
	for i := range numbers {
		n, size := binary.Uvarint(rest) // the time is a signed one, of the same length
		if size <= 0 {
			return nothing
		}
		numbers[i], rest = n, rest[size:]
	}
	return streamIndex{first: numbers[2], last: numbers[4]}
}
