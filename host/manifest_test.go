package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestManifestOfAnExport(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	inspection, err := h.Inspect(t.Context(), guest(t, "dispatcher"))
	if err != nil {
		t.Fatal(err)
	}
	if inspection.Origin != host.ManifestExport || inspection.Manifest.Name != "greetings" || inspection.Manifest.Version != "1.2.3" {
		t.Errorf("%s: %+v", inspection.Origin, inspection.Manifest)
	}
	hello := inspection.Signature.Functions[0]
	if hello.Description != "says hello" || string(hello.Input) != `{"type":"string"}` {
		t.Errorf("%+v", hello)
	}
	digest := load(t, h, guest(t, "dispatcher"))
	wantOutput(t, invoke(t, h, callOf(digest, "hello", "1")), `"dispatched hello"`)
	wantOutput(t, invoke(t, h, callOf(digest, "plain", "1")), `"plain"`)
	for _, hidden := range []string{"unlisted", "flowhost_manifest", "flowhost_invoke"} {
		wantFailure(t, invoke(t, h, callOf(digest, hidden, "1")), "rejected", "function")
	}
}

func TestManifestOfASection(t *testing.T) {
	t.Parallel()
	built, err := os.ReadFile(guest(t, "dispatcher"))
	if err != nil {
		t.Fatal(err)
	}
	module := withCustomSection(built, "flowhost.manifest", `{"abi":1,"capabilities":[{"name":"files","why":"reads lists"},{"name":"moon"}],"functions":[{"name":"section"}]}`)
	h := newHost(t, host.Config{})
	inspection, err := h.Inspect(t.Context(), writeFile(t, "section.wasm", module))
	if err != nil || inspection.Origin != host.ManifestSection {
		t.Fatalf("%+v, %v", inspection, err)
	}
	if wants := []run.Want{{Name: "files", Why: "reads lists"}, {Name: "moon"}}; !slices.Equal(inspection.Signature.Wants, wants) {
		t.Errorf("wants: %+v", inspection.Signature.Wants)
	}
	wantOutput(t, invoke(t, h, callOf(loadBytes(t, h, module), "", "1")), `"dispatched section"`)
}

func TestManifestOfACommandNamesItsFunction(t *testing.T) {
	t.Parallel()
	command := program{pages: 1, functions: []functionEntry{{"_start", wasiFunction, nil}}}
	module := withCustomSection(command.bytes(), "flowhost.manifest", `{"abi":1,"functions":[{"name":"convert"}]}`)
	h := newHost(t, host.Config{})
	digest := loadBytes(t, h, module)
	wantOutput(t, invoke(t, h, callOf(digest, "convert", "1")), "null")
	wantFailure(t, invoke(t, h, callOf(digest, "main", "1")), "rejected", "function")
}

func TestManifestsThatAreWrong(t *testing.T) {
	t.Parallel()
	command := program{pages: 1, functions: []functionEntry{{"_start", wasiFunction, nil}}}
	silent, broken := noop(), noop()
	silent.functions = append(silent.functions, functionEntry{"flowhost_manifest", taskFunction, []byte{opI32Const, 0}})
	broken.functions = append(broken.functions, functionEntry{"flowhost_manifest", taskFunction, []byte{opUnreachable}})
	section := func(p program, text string) []byte { return withCustomSection(p.bytes(), "flowhost.manifest", text) }
	tests := []struct {
		name   string
		module []byte
		reason string
	}{
		{"not JSON", section(noop(), `{`), "manifest is wrong"},
		{"another ABI", section(noop(), `{"abi":2,"functions":[{"name":"run"}]}`), "ABI version 2"},
		{"no ABI", section(noop(), `{"functions":[{"name":"run"}]}`), "ABI version 0"},
		{"no functions", section(noop(), `{"abi":1}`), "lists none"},
		{"listed twice", section(noop(), `{"abi":1,"functions":[{"name":"run"},{"name":"run"}]}`), "listed twice"},
		{"reserved name", section(noop(), `{"abi":1,"functions":[{"name":"flowhost_run"}]}`), "flowhost_run"},
		{"empty name", section(noop(), `{"abi":1,"functions":[{"name":""}]}`), `name ""`},
		{"name with a NUL", section(noop(), `{"abi":1,"functions":[{"name":"a\u0000"}]}`), "cannot have the name"},
		{"not exported", section(noop(), `{"abi":1,"functions":[{"name":"run"},{"name":"walk"}]}`), `lists ["walk"]`},
		{"two for a command", section(command, `{"abi":1,"functions":[{"name":"a"},{"name":"b"}]}`), "a command has one"},
		{"export says nothing", silent.bytes(), "ABI version 0"},
		{"export traps", broken.bytes(), "flowhost_manifest gave no manifest: trap: unreachable"},
	}
	h := newHost(t, host.Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, "plugin.wasm", tt.module)
			_, err := h.Signature(t.Context(), path)
			if fault, ok := errors.AsType[*host.ModuleError](err); !ok || !strings.Contains(fault.Reason, tt.reason) {
				t.Errorf("error %v, want %q", err, tt.reason)
			}
			inspection, err := h.Inspect(t.Context(), path)
			if err != nil || inspection.Usable || len(inspection.Notes) == 0 || !strings.Contains(inspection.Notes[0], tt.reason) {
				t.Errorf("inspection %+v, %v", inspection, err)
			}
		})
	}
}

func TestManifestExportKeepsToTheLimits(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Limits: run.Limits{Memory: 1 << 16}})
	_, err := h.Signature(t.Context(), guest(t, "dispatcher"))
	if fault, ok := errors.AsType[*host.ModuleError](err); !ok || !strings.Contains(fault.Reason, "no more memory was available") {
		t.Errorf("error %v", err)
	}
}

func TestInspectShowsWhatAModuleIs(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	path := guest(t, "dispatcher")
	i, err := h.Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if i.Path != path || i.Size != info.Size() || !i.Usable || i.Memory.Min == 0 || i.Memory.Name != "memory" {
		t.Errorf("%+v", i)
	}
	for _, want := range []host.Extern{
		{Module: "flowhost:task/v1", Name: "read", Kind: host.KindFunction, Type: "(i32, i32, i32) -> i32"},
		{Module: "wasi_snapshot_preview1", Name: "proc_exit", Kind: host.KindFunction, Type: "(i32) -> ()"},
	} {
		if !slices.Contains(i.Imports, want) {
			t.Errorf("import %+v is missing in %+v", want, i.Imports)
		}
	}
	for _, want := range []host.Extern{
		{Name: "_initialize", Kind: host.KindFunction, Type: "() -> ()"},
		{Name: "flowhost_invoke", Kind: host.KindFunction, Type: "() -> i32"},
		{Name: "memory", Kind: host.KindMemory},
	} {
		if !slices.Contains(i.Exports, want) {
			t.Errorf("export %+v is missing in %+v", want, i.Exports)
		}
	}
	if len(i.Notes) != 1 || !strings.Contains(i.Notes[0], `"unlisted"`) {
		t.Errorf("notes %q", i.Notes)
	}
}

func TestInspectToleratesModulesOfNoABI(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	i, err := h.Inspect(t.Context(), writeFile(t, "odd.wasm", importedGlobal()))
	if err != nil || i.Usable || i.Signature.ABI != "" || i.Memory != nil || len(i.Imports) != 1 || i.Imports[0].Kind != host.KindGlobal {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestManifestBesideAModule(t *testing.T) {
	t.Parallel()
	command := program{pages: 1, functions: []functionEntry{{"_start", wasiFunction, nil}}}.bytes()
	const manifest = `{"abi": 1, "name": "convert", "functions": [{"name": "convert", "input": {"type": "string"}}]}`
	path := writeFile(t, "module.wasm", command)
	h := newHost(t, host.Config{})
	plain, err := h.Signature(t.Context(), path)
	if err != nil || plain.Functions[0].Name != "main" {
		t.Fatalf("%+v, %v", plain, err)
	}
	sidecar := filepath.Join(filepath.Dir(path), host.ManifestFile)
	write := func(text string) {
		if err := os.WriteFile(sidecar, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(manifest)
	described, err := h.Signature(t.Context(), path)
	if err != nil || described.Digest == plain.Digest || described.Functions[0].Name != "convert" || string(described.Functions[0].Input) != `{"type":"string"}` {
		t.Fatalf("%+v, %v", described, err)
	}
	write("\n" + strings.ReplaceAll(manifest, " ", "  ") + "\n")
	if same, err := h.Signature(t.Context(), path); err != nil || same.Digest != described.Digest {
		t.Errorf("formatting changes the digest, or %v", err)
	}

	// What was recorded stays what it is, whatever happens to the file.
	if err := os.Remove(sidecar); err != nil {
		t.Fatal(err)
	}
	stored, err := h.SignatureOf(t.Context(), described.Digest)
	if err != nil || len(stored.Functions) != 1 || stored.Functions[0].Name != "convert" {
		t.Errorf("%+v, %v", stored, err)
	}
	wantOutput(t, invoke(t, h, callOf(described.Digest, "convert", `"a"`)), "null")

	for text, want := range map[string]string{
		`{`: "unexpected", `{"abi":2,"functions":[]}`: "ABI version 2", strings.Repeat(" ", 64<<10+1): "65537 bytes long",
		`{"abi":1,"functions":[]}`: "its manifest lists none",
	} {
		write(text)
		if _, err := h.Signature(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}

func TestManifestBesideADispatcherAndBesideOneWithItsOwn(t *testing.T) {
	t.Parallel()
	dispatcher := program{pages: 1, functions: []functionEntry{{"flowhost_invoke", taskFunction, []byte{opI32Const, 0}}}}.bytes()
	own := withCustomSection(dispatcher, "flowhost.manifest", `{"abi":1,"functions":[{"name":"own"}]}`)
	for want, module := range map[string][]byte{"beside": dispatcher, "own": own} {
		path := writeFile(t, "module.wasm", module)
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), host.ManifestFile), []byte(`{"abi":1,"functions":[{"name":"beside"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHost(t, host.Config{})
		if s, err := h.Signature(t.Context(), path); err != nil || s.Functions[0].Name != want {
			t.Errorf("%+v, %v", s, err)
		}
	}
	exported, err := newHost(t, host.Config{}).Inspect(t.Context(), besideManifest(t, guest(t, "dispatcher")))
	if err != nil || exported.Origin != host.ManifestExport {
		t.Errorf("%+v, %v", exported, err)
	}
}

// besideManifest copies a module into a directory with a manifest.
func besideManifest(t *testing.T, module string) string {
	t.Helper()
	content, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, "module.wasm", content)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), host.ManifestFile), []byte(`{"abi":1,"functions":[{"name":"beside"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
