package guestfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/guestfs"
	"github.com/flowhost/flowhost/host/internal/wasi"
	"github.com/flowhost/flowhost/run"
)

// instance is a real guest, built by Go, on which calls are made as the host
// makes them.
type instance struct {
	t      *testing.T
	module api.Module
}

type processKey struct{}

func processOf(ctx context.Context) *wasi.Process {
	p, _ := ctx.Value(processKey{}).(*wasi.Process)
	return p
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	path := filepath.Join(t.TempDir(), "files.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-o", path, "./testdata/guests/files")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary, err := os.ReadFile(path)
	must(t, err)
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter()) // nothing to compile
	t.Cleanup(func() { must(t, runtime.Close(context.Background())) })
	must(t, wasi.Provide(ctx, runtime, processOf))
	i := &instance{t: t}
	_, _, err = i.run(nil, nil, func(ctx context.Context) error {
		i.module, err = runtime.InstantiateWithConfig(ctx, binary, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
		return err
	})
	must(t, err)
	return i
}

// run does something with the guest that has a process and files of its own.
func (i *instance) run(grants []run.FileGrant, input []byte, do func(context.Context) error) ([]byte, guestfs.Usage, error) {
	i.t.Helper()
	files, err := guestfs.Open(nil, grants, guestfs.Limits{Written: 8 << 20})
	must(i.t, err)
	var output bytes.Buffer
	process := &wasi.Process{
		Stdin: bytes.NewReader(input), Stdout: &output, Stderr: os.Stderr, Random: bytes.NewReader(make([]byte, 1<<10)),
		Walltime: func() (int64, int32) { return 0, 0 }, Nanotime: func() int64 { return 1 }, FS: files,
	}
	err = do(context.WithValue(i.t.Context(), processKey{}, process))
	open := process.Close()
	usage := files.Close()
	if usage.Open != 0 {
		i.t.Errorf("%d files are open after those of the process were closed", usage.Open)
	}
	usage.Open = open
	return output.Bytes(), usage, err
}

type operation struct{ Do, Path, With string }

// call grants directories, has the guest do the operations, and gives what came of
// each.
func (i *instance) call(grants []run.FileGrant, operations ...operation) ([]string, guestfs.Usage) {
	i.t.Helper()
	input, err := json.Marshal(operations)
	must(i.t, err)
	output, usage, err := i.run(grants, input, func(ctx context.Context) error {
		status, err := i.module.ExportedFunction("call").Call(ctx)
		if err == nil && status[0] != 0 {
			err = fmt.Errorf("status %d", status[0])
		}
		return err
	})
	must(i.t, err)
	var results []string
	must(i.t, json.Unmarshal(output, &results))
	return results, usage
}

// check compares what came of operations with what was to come.
func (i *instance) check(grants []run.FileGrant, open int, steps ...[2]any) {
	i.t.Helper()
	var operations []operation
	for _, s := range steps {
		operations = append(operations, s[0].(operation))
	}
	results, usage := i.call(grants, operations...)
	for n, s := range steps {
		if diff := cmp.Diff(s[1], results[n]); diff != "" {
			i.t.Errorf("%v: %s", s[0], diff)
		}
	}
	if usage.Open != open {
		i.t.Errorf("%+v", usage)
	}
}

func do(what, path, with string, result any) [2]any {
	return [2]any{operation{what, path, with}, result}
}

func TestGuest(t *testing.T) {
	t.Parallel()
	i, r := newInstance(t), newRig(t)
	i.check(nil, 0,
		do("read", "/data/a.txt", "", "error: open /data/a.txt: No such file or directory"),
		do("read", "/etc/hostname", "", "error: open /etc/hostname: No such file or directory"),
		do("list", "/", "", ""),
		do("write", "/x", "x", "error: open /x: Read-only file system"),
	)
	i.check(r.grants(), 0,
		do("list", "/", "", "datatrue outtrue"),
		do("read", "/data/a.txt", "", "alpha"),
		do("read", "/data/good", "", "alpha"),
		do("read", "data/b/../a.txt", "", "alpha"),
		do("list", "/data/b", "", "c.txtfalse"),
		do("walk", "/out/d", "", "/out/d /out/d/e.txt"),
		do("write", "/data/a.txt", "x", "error: open /data/a.txt: Read-only file system"),
		do("remove", "/data/b", "", "error: unlinkat /data/b: Read-only file system"),
		do("rename", "/data/a.txt", "/data/z", "error: rename /data/a.txt /data/z: Read-only file system"),
		do("rename", "/out/old.txt", "/data/z", "error: rename /out/old.txt /data/z: Read-only file system"),
		do("symlink", "/out/s", "/etc/hostname", "error: symlink /etc/hostname /out/s: Operation not permitted"),
		do("symlink", "/out/s", "../../secret.txt", "error: symlink ../../secret.txt /out/s: Operation not permitted"),
		do("link", "/out/l", "/out/old.txt", "error: link /out/old.txt /out/l: Operation not permitted"),
		do("read", "/data/parent", "", "error: open /data/parent: Operation not permitted"),
		do("read", "/data/absolute", "", "error: open /data/absolute: Operation not permitted"),
		do("read", "/data/etc/hostname", "", "error: open /data/etc/hostname: Operation not permitted"),
		do("read", "/data/pipe", "", "error: open /data/pipe: Permission denied"),
		do("read", "/../secret.txt", "", "error: open /../secret.txt: No such file or directory"),
		do("write", "/out/new.txt", "hello", ""),
		do("append", "/out/new.txt", " world", ""),
		do("read", "/out/new.txt", "", "hello world"),
		do("times", "/out/new.txt", "", ""),
		do("stat", "/out/new.txt", "", "11 false2023-11-14T22:13:20Z"),
		do("truncate", "/out/new.txt", "", ""),
		do("rename", "/out/new.txt", "/out/d/moved", ""),
		do("read", "/out/d/moved", "", "he"),
		do("mkdir", "/out/x/y/z", "", ""),
		do("write", "/out/x/y/z/file", "", ""),
		do("remove", "/out/x", "", ""),
		do("stat", "/out/x", "", "error: stat /out/x: No such file or directory"),
		do("fill", "/out/full", "", "error: write /out/full: I/O error"),
	)
	if text, err := os.ReadFile(filepath.Join(r.dir, "flows/out/d/moved")); string(text) != "he" || err != nil {
		t.Errorf("on the host: %q %v", text, err)
	}

	i.check(r.grants()[:1], 0, // the next call sees its own grants
		do("list", "/", "", "datatrue"),
		do("read", "/out/old.txt", "", "error: open /out/old.txt: No such file or directory"),
	)
	i.check(r.grants(), 1, do("leave", "/data/a.txt", "", ""))
	i.check(r.grants(), 0, do("read left", "", "", "error: read /data/a.txt: Bad file number"))

	var names strings.Builder // a directory that is read in many pieces
	for n := range 2500 {
		name := fmt.Sprintf("%04d%s", n, strings.Repeat("x", n%100))
		must(t, os.WriteFile(filepath.Join(r.dir, "flows/data/b", name), nil, 0o600))
		names.WriteString(name + "false ")
	}
	i.check(r.grants(), 0, do("list", "/data/b", "", names.String()+"c.txtfalse"))
}
