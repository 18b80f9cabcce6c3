// Command pack compresses built modules into the directory of package std, and writes their
// digests: pack DIR MODULE.wasm...
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := pack(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(dir string, modules []string) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	var digests strings.Builder
	for _, path := range modules {
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".wasm")
		fmt.Fprintf(&digests, "%s sha256:%x\n", name, sha256.Sum256(binary))
		if err := os.WriteFile(filepath.Join(dir, name+".wasm.zst"), encoder.EncodeAll(binary, nil), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "digests"), []byte(digests.String()), 0o644)
}
