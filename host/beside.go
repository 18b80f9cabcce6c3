package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// ManifestFile is the name of a manifest that lies beside a module, for languages
// that cannot write one into it.
const ManifestFile = "plugin.json"

// withManifest gives a module that has no manifest of its own the one beside it,
// as the custom section that it could have: the manifest then is part of what is
// stored, of its digest, and of every run that recorded it.
func withManifest(path string, module []byte, limits PreflightLimits) ([]byte, error) {
	beside := filepath.Join(filepath.Dir(path), ManifestFile)
	text, err := readBeside(beside)
	if text == nil || err != nil {
		return module, err
	}
	walked, fault := preflight(module, limits)
	if fault != nil || walked.Custom != nil || walked.HasExport {
		return module, nil // with what is wrong with it, if anything
	}
	if _, err := parseManifest(text); err != nil {
		return nil, &ModuleError{Path: path, Reason: fmt.Sprintf("the manifest beside it, %s, is wrong: %s", beside, err), Hint: "correct it, or take it away"}
	}
	// Formatting and the end of the file are no part of what is stated.
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, &ModuleError{Path: path, Reason: beside + ": " + err.Error()}
	}
	return appendSection(module, abi.ManifestSection, compact.Bytes()), nil
}

// readBeside gives nil where there is no manifest. It reads no more than one may
// be long, and a byte with which it is too long.
func readBeside(path string) ([]byte, error) {
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

// appendSection adds a custom section at the end, where any may stand (WebAssembly
// core specification, section 5.5.3).
func appendSection(module []byte, name string, content []byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name))) // LEB128 without sign
	body = append(append(body, name...), content...)
	out := append(bytes.Clone(module), wasm.SectionCustom)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...)
}
