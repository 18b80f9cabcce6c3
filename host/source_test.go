package host_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
)

func digestOf(module []byte) string {
	sum := sha256.Sum256(module)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestSources(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]host.Source{
		"folder": host.Folder(filepath.Join(t.TempDir(), "modules")),
		"memory": host.NewMemorySource(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := []byte("some bytes")
			digest := digestOf(module)
			if _, err := source.Open(t.Context(), digest); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open before keep: %v", err)
			}
			for range 2 {
				if err := source.Keep(t.Context(), digest, module); err != nil {
					t.Fatal(err)
				}
			}
			kept := bytes.Clone(module)
			module[0]++ // the source has its own copy
			if got, err := source.Open(t.Context(), digest); err != nil || !bytes.Equal(got, kept) {
				t.Errorf("open: %q, %v", got, err)
			}
		})
	}
}

func TestFolderDetectsAndRepairsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, module := host.Folder(dir), []byte("some bytes")
	digest := digestOf(module)
	if err := folder.Keep(t.Context(), digest, module); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")+".wasm")
	if err := os.WriteFile(path, []byte("same bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(t.Context(), digest); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("open: %v", err)
	}
	if err := folder.Keep(t.Context(), digest, module); err != nil {
		t.Fatal(err)
	}
	if got, err := folder.Open(t.Context(), digest); err != nil || !bytes.Equal(got, module) {
		t.Errorf("after keep: %q, %v", got, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestFolderTakesOnlyDigests(t *testing.T) {
	t.Parallel()
	folder := host.Folder(t.TempDir())
	for _, digest := range []string{
		"", "sha256:", "sha256:../../../etc/passwd", strings.Repeat("0", 64),
		"sha256:" + strings.Repeat("0", 62), "sha256:" + strings.Repeat("A", 64), "sha512:" + strings.Repeat("0", 64),
	} {
		if _, err := folder.Open(t.Context(), digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %q: %v", digest, err)
		}
		if err := folder.Keep(t.Context(), digest, nil); err == nil {
			t.Errorf("keep %q went well", digest)
		}
	}
}
