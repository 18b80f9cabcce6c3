package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flowhost/flowhost/host/internal/manifest"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// ManifestFile is the name of a manifest that lies beside a module, for languages
// that cannot write one into it.
const ManifestFile = "plugin.json"

// withManifest adds the manifest in the file beside a module that contains none,
// as the custom section that it could have: the manifest then is part of what is
// stored, of its digest, and of every run that recorded it.
func withManifest(path string, module []byte, limits PreflightLimits) ([]byte, error) {
	sidecar := sidecarOf(path)
	text, err := readSidecar(sidecar)
	if text == nil || err != nil {
		return module, err
	}
	walked, fault := preflight(module, limits)
	if fault != nil || walked.Custom != nil || walked.HasExport {
		return module, nil // with what is wrong with it, if anything
	}
	if _, err := manifest.Parse(text); err != nil {
		return nil, &ModuleError{Path: path, Reason: fmt.Sprintf("the manifest beside it, %s, is wrong: %s", sidecar, err), Hint: "correct it, or take it away"}
	}
	if text, err = compacted(text); err != nil {
		return nil, locate(err, path)
	}
	return wasm.AppendCustom(module, abi.ManifestSection, text), nil
}

// sidecarOf is the path of the manifest beside a module.
func sidecarOf(path string) string { return filepath.Join(filepath.Dir(path), ManifestFile) }

// readSidecar gives nil where there is no manifest. It reads no more than one may
// be long, and a byte with which it is too long.
func readSidecar(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, abi.MaxManifest+1))
}
