package host

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/flowhost/flowhost/run"
)

// Signature reads the module at path, stores it by its digest and states what it
// offers. It fails with a *[ModuleError] when the file cannot be hosted; nothing
// is stored then. A *[StorageError] reports that the module is right and cannot be stored.
func (h *Host) Signature(ctx context.Context, path string) (run.Signature, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return run.Signature{}, err
	}
	defer leave()
	m, binary, err := h.loadFile(ctx, path)
	if err != nil {
		return run.Signature{}, err
	}
	defer h.modules.release(m)
	if m.fault != nil {
		return run.Signature{}, m.fault.at(path)
	}
	if err := h.config.Modules.Keep(ctx, m.signature.Digest, binary); err != nil {
		return run.Signature{}, &StorageError{err}
	}
	return m.signature, nil
}

// SignatureOf states what the stored module of that digest offers. It fails with
// fs.ErrNotExist when there is none, with a *[ModuleError] when it cannot be
// hosted.
func (h *Host) SignatureOf(ctx context.Context, digest string) (run.Signature, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return run.Signature{}, err
	}
	defer leave()
	m, err := h.stored(ctx, digest)
	if err != nil {
		return run.Signature{}, err
	}
	defer h.modules.release(m)
	return m.signature, nil
}

// loadFile prepares the module in a file, with the manifest beside it if it has
// none, to be released. Its fault, if any, is in the module.
func (h *Host) loadFile(ctx context.Context, path string) (*module, []byte, error) {
	binary, err := readModule(path, h.config.ModuleSize)
	if err != nil {
		return nil, nil, err
	}
	if binary, err = withManifest(path, binary, h.config.Preflight); err != nil {
		return nil, nil, err
	}
	m, err := h.moduleOf(ctx, binary)
	if err != nil {
		return nil, nil, locate(err, path)
	}
	return m, binary, nil
}

func readModule(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &ModuleError{Path: path, Reason: "not a file", Hint: "name the .wasm file itself"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	binary, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(binary)) > limit {
		return nil, &ModuleError{
			Path: path, Reason: fmt.Sprintf("larger than %d bytes", limit),
			Hint: "strip it (go build -ldflags='-s -w'), or raise the limit",
		}
	}
	return binary, nil
}
