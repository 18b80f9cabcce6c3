package host_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestModulesThatCannotBeHosted(t *testing.T) {
	t.Parallel()
	good := noop().bytes()
	importing := func(module, name string, typ signature) []byte {
		p := noop()
		p.imports = []importEntry{{module, name, typ}}
		return p.bytes()
	}
	command := func(p program) []byte {
		p.functions = []functionEntry{{"_start", wasiFunction, nil}}
		return p.bytes()
	}
	unary := signature{params: []byte{i32}, results: []byte{i32}}
	tests := []struct {
		name   string
		module []byte
		reason string
		hint   string
	}{
		{"empty", nil, "ends early", "again"},
		{"half a header", good[:5], "ends early", "again"},
		{"native program", []byte("\x7fELF\x02\x01\x01"), "not a WebAssembly module", "GOOS=wasip1"},
		{"text form", []byte("(module)"), "text form", "wat2wasm"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "component", "wasm32-wasip1"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), "unknown version", "version 1"},
		{"truncated", good[:len(good)-3], "the code section, byte 0x32", "cut short"},
		{"later proposal", task(0x12, 0).bytes(), "the code section, byte 0x37: function 0 uses tail calls", "-mno-tail-call"}, // return_call
		{"wrong by its types", task(opI32Add).bytes(), "not a valid module", "toolchain"},
		{"manifest that is too long", withCustomSection(good, "flowhost.manifest", strings.Repeat(" ", 64<<10+1)), "flowhost.manifest is 65537 bytes long", "smaller"},
		{"larger than allowed", make([]byte, 1<<20+1), "larger than 1048576 bytes", "strip"},
		{"unknown import module", importing("env", "abort", unary), `imports function abort from module "env"`, "wasi_snapshot_preview1 and flowhost:task/v1"},
		{"Extism", importing("extism:host/env", "length", unary), "extism:host/env", "Extism plugin"},
		{"built for JavaScript", importing("gojs", "runtime.wasmExit", unary), "gojs", "GOOS=wasip1"},
		{"old WASI", importing("wasi_unstable", "fd_write", unary), "wasi_unstable", "newer toolchain"},
		{"WASI 0.2", importing("wasi:io/streams@0.2.0", "read", unary), "wasi:io", "WASI 0.2"},
		{"future ABI", importing("flowhost:task/v2", "size", unary), "flowhost:task/v2", "another version"},
		{"unknown import", importing("flowhost:task/v1", "teleport", unary), `imports function "teleport" from flowhost:task/v1`, "SDK"},
		{"wrong type", importing("flowhost:task/v1", "time_left", unary), "(i32) -> i32, it is () -> i64", "declare"},
		{"imported global", importedGlobal(), `imports global "base" from flowhost:task/v1`, ""},
		{"no memory", program{noMemory: true, functions: noop().functions}.bytes(), "no memory", "linker"},
		{"no function", program{pages: 1}.bytes(), "no function", "wasmexport"},
		{"no function of the type", program{pages: 1, functions: []functionEntry{{"add", unary, []byte{opI32Const, 0}}}}.bytes(), "no function", "wasmexport"},
		{"dispatcher without manifest", program{pages: 1, functions: []functionEntry{{"flowhost_invoke", taskFunction, []byte{opI32Const, 0}}}}.bytes(), "no manifest", "flowhost.manifest"},
		{"command that imports the ABI of reactors", command(program{pages: 1, imports: []importEntry{{"flowhost:task/v1", "size", unary}}}), "exports _start", "-buildmode=c-shared, or let it read stdin"},
	}
	h := newHost(t, host.Config{ModuleSize: 1 << 20})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, "plugin.wasm", tt.module)
			_, err := h.Signature(t.Context(), path)
			fault, ok := errors.AsType[*host.ModuleError](err)
			if !ok {
				t.Fatalf("error %v, want a ModuleError", err)
			}
			if fault.Path != path || !strings.Contains(fault.Reason, tt.reason) || !strings.Contains(fault.Hint, tt.hint) {
				t.Errorf("%v\nwant reason %q, hint %q", fault, tt.reason, tt.hint)
			}
		})
	}
}

// importedGlobal imports a global where only functions are offered.
func importedGlobal() []byte {
	entry := concat(name("flowhost:task/v1"), name("base"), []byte{3, i32, 0})
	return concat([]byte("\x00asm\x01\x00\x00\x00"), section(secImport, [][]byte{entry}))
}

func TestFilesThatAreNoModules(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	if _, err := h.Signature(t.Context(), filepath.Join(t.TempDir(), "absent.wasm")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if _, err := h.Signature(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("folder: %v", err)
	}
}

func TestSignatureOfEachABI(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	for _, tt := range []struct{ path, abi, first string }{
		{guest(t, "tasks"), host.ABIFlowhost, "asks"},
		{guest(t, "dispatcher"), host.ABIFlowhost, "hello"},
		{guest(t, "command"), host.ABIWASI, "main"},
		{writeFile(t, "noop.wasm", noop().bytes()), host.ABIFlowhost, "run"},
	} {
		signature, err := h.Signature(t.Context(), tt.path)
		if err != nil || signature.ABI != tt.abi || signature.Functions[0].Name != tt.first || !strings.HasPrefix(signature.Digest, "sha256:") {
			t.Errorf("%s: %+v, %v", tt.path, signature, err)
		}
		again, err := h.SignatureOf(t.Context(), signature.Digest)
		if err != nil || again.Digest != signature.Digest || len(again.Functions) != len(signature.Functions) {
			t.Errorf("%s by digest: %+v, %v", tt.path, again, err)
		}
	}
}

func TestModuleIsOpenedFromTheSource(t *testing.T) {
	t.Parallel()
	folder := host.Folder(filepath.Join(t.TempDir(), "modules"))
	digest := load(t, newHost(t, host.Config{Modules: folder}), guest(t, "tasks"))
	wantOutput(t, invoke(t, newHost(t, host.Config{Modules: folder}), callOf(digest, "counter", "1")), "1")
}

func TestModuleThatIsNotThere(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := "sha256:" + strings.Repeat("0", 64)
	failure := wantFailure(t, invoke(t, h, callOf(digest, "", "1")), run.OutcomeRejected, run.CodeModule)
	if !strings.Contains(failure.Message, digest) {
		t.Errorf("message %q", failure.Message)
	}
	if _, err := h.SignatureOf(t.Context(), digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("signature: %v", err)
	}
	// A failure is not remembered.
	if loaded := loadBytes(t, h, noop().bytes()); loaded == digest {
		t.Fatal("unexpected digest")
	}
}

func TestFaultyModuleRejectsItsCalls(t *testing.T) {
	t.Parallel()
	source := host.NewMemorySource()
	module := importedGlobal()
	digest := digestOf(module)
	if err := source.Keep(t.Context(), digest, module); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, host.Config{Modules: source})
	failure := wantFailure(t, invoke(t, h, callOf(digest, "", "1")), run.OutcomeRejected, run.CodeModule)
	if !strings.Contains(failure.Message, "base") {
		t.Errorf("message %q", failure.Message)
	}
}

func TestSourceThatBreaksIsWorthAnotherTry(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Modules: brokenSource{}})
	failure := wantFailure(t, invoke(t, h, callOf("sha256:00", "", "1")), run.OutcomeRejected, run.CodeModule)
	if !failure.Retryable || !strings.Contains(failure.Message, "disk on fire") {
		t.Errorf("%+v", failure)
	}
	_, err := h.Signature(t.Context(), writeFile(t, "noop.wasm", noop().bytes()))
	if storage := (*host.StorageError)(nil); !errors.Is(err, errDisk) || !errors.As(err, &storage) {
		t.Errorf("signature: %v", err)
	}
}

var errDisk = errors.New("disk on fire")

type brokenSource struct{}

func (brokenSource) Open(context.Context, string) ([]byte, error) { return nil, errDisk }
func (brokenSource) Size(context.Context, string) (int64, error)  { return 0, errDisk }
func (brokenSource) Keep(context.Context, string, []byte) error   { return errDisk }

func TestModuleErrorReadsAsOneLine(t *testing.T) {
	t.Parallel()
	fault := &host.ModuleError{Path: "a.wasm", Reason: "no function"}
	if got := fault.Error(); got != "a.wasm: no function" {
		t.Error(got)
	}
	fault.Hint = "export one"
	if got := fault.Error(); got != "a.wasm: no function; export one" {
		t.Error(got)
	}
}

func TestSourceThatGivesOtherBytesIsNotTrusted(t *testing.T) {
	t.Parallel()
	source := host.NewMemorySource()
	digest := "sha256:" + strings.Repeat("1", 64)
	if err := source.Keep(t.Context(), digest, noop().bytes()); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, host.Config{Modules: source})
	wantFailure(t, invoke(t, h, callOf(digest, "", "1")), run.OutcomeRejected, run.CodeModule)
}

// A directory that holds more than a cache may, as a home directory does, is named
// by mistake. The files are sparse.
func TestCacheNamedByMistake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for i := range 3 {
		name := filepath.Join(dir, fmt.Sprintf("%d.tar", 2019+i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, 1<<30); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Config{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestHostWorksWithoutItsCache(t *testing.T) {
	t.Parallel()
	h, err := host.New(t.Context(), host.Config{CacheDir: writeFile(t, "file", nil)})
	if err != nil {
		t.Fatal(err)
	}
	h.Close(t.Context())
}
