package host_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
)

const besideRun = `{"abi": 1, "name": "noop", "functions": [{"name": "run", "input": {"type": "string"}}]}`

// embed gives a module with the manifest beside it; "" for none.
func embed(t *testing.T, h *host.Host, module []byte, beside string) ([]byte, error) {
	t.Helper()
	path := writeFile(t, "module.wasm", module)
	if beside != "" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), host.ManifestFile), []byte(beside), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h.Embed(t.Context(), path, host.EmbedOptions{Name: "given"})
}

func TestEmbedWhatTheExportSays(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	built, err := os.ReadFile(guest(t, "dispatcher"))
	if err != nil {
		t.Fatal(err)
	}
	// It wins over a manifest beside the module, as it does without a section, and
	// over an older section.
	stale := withCustomSection(built, "flowhost.manifest", `{"abi":1,"functions":[{"name":"stale"}]}`)
	embedded, err := embed(t, h, stale, besideRun)
	if err != nil {
		t.Fatal(err)
	}
	i, err := h.Inspect(t.Context(), writeFile(t, "embedded.wasm", embedded))
	if err != nil || i.Origin != host.ManifestSection || !i.Usable || i.Manifest.Name != "greetings" || i.Signature.Functions[0].Name != "hello" {
		t.Errorf("%+v, %v", i, err)
	}
	if !bytes.HasPrefix(embedded, built) {
		t.Error("more than the section has changed")
	}
	for name, module := range map[string][]byte{"without a section": built, "done before": embedded} {
		if again, err := embed(t, h, module, ""); err != nil || !bytes.Equal(again, embedded) {
			t.Errorf("%s: other bytes, %v", name, err)
		}
	}
}

func TestEmbedTheManifestBeside(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	embedded, err := embed(t, h, noop().bytes(), "\n"+besideRun+"\n")
	if err != nil {
		t.Fatal(err)
	}
	// It is the module that a host makes of the two files.
	path := writeFile(t, "module.wasm", noop().bytes())
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), host.ManifestFile), []byte(besideRun), 0o600); err != nil {
		t.Fatal(err)
	}
	loose, err := h.Signature(t.Context(), path)
	if err != nil || loose.Digest != load(t, h, writeFile(t, "embedded.wasm", embedded)) {
		t.Errorf("%+v, %v", loose, err)
	}

	other := strings.ReplaceAll(besideRun, "noop", "other")
	if replaced, err := embed(t, h, embedded, other); err != nil || !bytes.Contains(replaced, []byte(`"name":"other"`)) || bytes.Contains(replaced, []byte(`"noop"`)) {
		t.Errorf("%q, %v", replaced, err)
	}
	if kept, err := embed(t, h, embedded, ""); err != nil || !bytes.Equal(kept, embedded) {
		t.Errorf("without a file: %q, %v", kept, err)
	}
}

func TestEmbedNamesTheManifestBeside(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	beside := writeFile(t, "other.json", []byte(besideRun))
	embedded, err := h.Embed(t.Context(), writeFile(t, "module.wasm", noop().bytes()), host.EmbedOptions{Sidecar: beside})
	if err != nil || !bytes.Contains(embedded, []byte(`"noop"`)) {
		t.Errorf("%q, %v", embedded, err)
	}
}

func TestEmbedRefuses(t *testing.T) {
	t.Parallel()
	silent := noop()
	silent.functions = append(silent.functions, functionEntry{"flowhost_manifest", taskFunction, []byte{opI32Const, 0}})
	typed := program{pages: 1, functions: []functionEntry{{"run", wasiFunction, nil}}}
	dispatcher := program{pages: 1, functions: []functionEntry{{"flowhost_invoke", taskFunction, []byte{opI32Const, 0}}}}
	tests := []struct {
		name   string
		module []byte
		beside string
		want   string
	}{
		{"no module", []byte("text"), besideRun, "not a WebAssembly module"},
		{"not JSON", noop().bytes(), `{`, "unexpected end"},
		{"too large", noop().bytes(), besideRun + strings.Repeat(" ", 64<<10), "bytes long, and 65536 are allowed"},
		{"another version", noop().bytes(), `{"abi":2,"functions":[{"name":"run"}]}`, "ABI version 2"},
		{"no function", noop().bytes(), `{"abi":1}`, "its manifest lists none"},
		{"no such function", noop().bytes(), `{"abi":1,"functions":[{"name":"runn"}]}`, `lists ["runn"], which no export of type () -> i32 serves; did you mean "run"? export`},
		{"function of another type", typed.bytes(), besideRun, "run is exported with the type () -> ()"},
		{"unknown word", noop().bytes(), `{"abi":1,"functions":[{"name":"run"}],"descripton":"x"}`, `unknown property "descripton"; did you mean "description"?`},
		{"unknown property of a function", noop().bytes(), `{"abi":1,"functions":[{"name":"run"},{"name":"x","inptu":{}}]}`, `functions[1]: unknown property "inptu"; did you mean "input"?`},
		{"unknown property of a capability", noop().bytes(), `{"abi":1,"capabilities":[{"name":"files","wy":""}],"functions":[{"name":"run"}]}`, `capabilities[0]: unknown property "wy"; did you mean "why"?`},
		{"capability without a name", noop().bytes(), `{"abi":1,"capabilities":[{"why":"x"}],"functions":[{"name":"run"}]}`, "a capability has no name"},
		{"far word", noop().bytes(), `{"abi":1,"functions":[{"name":"run"}],"schedule":""}`, `unknown property "schedule"; correct it`},
		{"silent export", silent.bytes(), besideRun, "its manifest is wrong"},
		{"nothing to dispatch", dispatcher.bytes(), "", "no manifest that lists what it serves"},
		{"no ABI", importedGlobal(), besideRun, "imports global"},
	}
	h := newHost(t, host.Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := embed(t, h, tt.module, tt.beside)
			if fault, ok := errors.AsType[*host.ModuleError](err); !ok || fault.Path != "given" || !strings.Contains(fault.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := embed(t, h, noop().bytes(), ""); !errors.Is(err, host.ErrNoManifest) {
		t.Errorf("without any manifest: %v", err)
	}
	if _, err := embed(t, h, noop().bytes(), `{"$schema":"x","abi":1,"functions":[{"name":"run"}]}`); err != nil {
		t.Errorf("with $schema: %v", err)
	}
	if _, err := h.Embed(t.Context(), filepath.Join(t.TempDir(), "gone.wasm"), host.EmbedOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
