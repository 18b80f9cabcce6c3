package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/flowhost/flowhost/host/internal/known"
	"github.com/flowhost/flowhost/run"
)

// Catalog is the modules of a host as those see them who load flows. It is safe for
// concurrent use.
type Catalog struct {
	Host *Host

	Compile bool // a module is usable only when it is compiled; default: the first call compiles it, or Host.Compile
	Defer   bool // without Compile: whether the code of functions is valid is left to who compiles it
	Discard bool // modules are not stored, so they cannot be called
}

// Signature checks the module at path, stores it by its digest and states what it offers.
// It fails with a *[ModuleError] when the file cannot be hosted; nothing is stored then. A
// *[StorageError] reports that the module is right and cannot be stored.
func (c Catalog) Signature(ctx context.Context, path string) (run.Signature, error) {
	if signature, ok := c.Known(ctx, path); ok {
		return signature, nil
	}
	ctx, leave, err := c.Host.enter(ctx)
	if err != nil {
		return run.Signature{}, err
	}
	defer leave()
	before := identify(path)
	binary, err := c.Host.read(path)
	if err != nil {
		return run.Signature{}, err
	}
	signature, err := c.accept(ctx, path, binary)
	if err != nil {
		return run.Signature{}, err
	}
	if absolute, err := filepath.Abs(path); err == nil {
		c.Host.known.KeepDigest(absolute, signature.Digest, before, identify(path))
	}
	return signature, nil
}

// Embedded is Signature for a module that the program has in itself, and of which it knows the
// digest: it is opened only if no earlier check has found it good.
func (c Catalog) Embedded(ctx context.Context, digest string, open func() ([]byte, error)) (run.Signature, error) {
	c.Compile, c.Defer = false, true // it compiles: who builds the program sees to that
	facts, known := c.Host.facts(digest)
	if known && c.suffice(&facts) && (c.Discard || c.Host.keeps(ctx, &facts)) {
		return facts.Signature, nil
	}
	ctx, leave, err := c.Host.enter(ctx)
	if err != nil {
		return run.Signature{}, err
	}
	defer leave()
	binary, err := open()
	if err != nil {
		return run.Signature{}, err
	}
	return c.accept(ctx, digest, binary)
}

// accept checks a module that has a name for its author, and stores it.
func (c Catalog) accept(ctx context.Context, name string, binary []byte) (run.Signature, error) {
	signature, err := c.check(ctx, binary)
	if err != nil {
		return run.Signature{}, locate(c.Host.closedOr(err), name)
	}
	if !c.Discard {
		if err := c.Host.config.Modules.Keep(ctx, signature.Digest, binary); err != nil {
			return run.Signature{}, &StorageError{err}
		}
	}
	return signature, nil
}

// Known states what the module at path offers without reading it, if an earlier check has
// found it good, and the file has not changed since.
func (c Catalog) Known(ctx context.Context, path string) (run.Signature, bool) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return run.Signature{}, false
	}
	digest, seen := c.Host.known.Digest(absolute, identify(path))
	if !seen {
		return run.Signature{}, false
	}
	facts, known := c.Host.facts(digest)
	if !known || !c.suffice(&facts) {
		return run.Signature{}, false
	}
	return facts.Signature, c.Discard || c.Host.keeps(ctx, &facts)
}

// suffice reports whether all that is asked for was found before.
func (c Catalog) suffice(facts *known.Facts) bool {
	return c.Defer && !c.Compile || facts.Code && !c.Compile || c.Host.known.Compiled(facts.Signature.Digest)
}

// check checks a module, and compiles it if that is part of it.
func (c Catalog) check(ctx context.Context, binary []byte) (run.Signature, error) {
	signature, err := c.Host.check(ctx, binary, !c.Defer && !c.Compile) // compiling validates code
	if err != nil || !c.Compile || c.Host.known.Compiled(signature.Digest) {
		return signature, err
	}
	return c.Host.prepared(ctx, binary)
}

// SignatureOf is [Host.SignatureOf].
func (c Catalog) SignatureOf(ctx context.Context, digest string) (run.Signature, error) {
	return c.Host.SignatureOf(ctx, digest)
}

// Signature is that of a [Catalog] in which a module must compile.
func (h *Host) Signature(ctx context.Context, path string) (run.Signature, error) {
	return Catalog{Host: h, Compile: true}.Signature(ctx, path)
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
	if facts, ok := h.facts(digest); ok && h.keeps(ctx, &facts) {
		return facts.Signature, nil
	}
	var signature run.Signature
	binary, err := h.open(ctx, digest)
	if err == nil {
		signature, err = h.check(ctx, binary, false)
	}
	if err != nil {
		return run.Signature{}, locate(h.closedOr(err), digest)
	}
	return signature, nil
}

// closedOr is err, unless the host is closed: whatever went wrong then, that is why.
func (h *Host) closedOr(err error) error {
	if h.life.Err() != nil {
		return ErrClosed
	}
	return err
}

// facts returns what is known of a module, if a check by this host would find the same.
func (h *Host) facts(digest string) (known.Facts, bool) {
	facts, ok := h.known.Facts(digest)
	return facts, ok && facts.Size <= h.config.ModuleSize && (facts.Within == "" || facts.Within == h.within())
}

// within is the limits of calls that state manifests.
func (h *Host) within() string {
	t := h.tuning.Load()
	return fmt.Sprint(t.Limits, t.Timeout, h.config.Memory)
}

// keeps reports whether the source has the module, as far as can be seen without
// reading it.
func (h *Host) keeps(ctx context.Context, facts *known.Facts) bool {
	size, err := h.config.Modules.Size(ctx, facts.Signature.Digest)
	return err == nil && size == facts.Size
}

// identify is the identity of a module's file and of the manifest beside it.
func identify(path string) known.Identity { return known.Identify(path, sidecarOf(path)) }

// loadFile prepares the module in a file, to be released. Its fault, if any, is in the
// module.
func (h *Host) loadFile(ctx context.Context, path string) (*module, error) {
	binary, err := h.read(path)
	if err != nil {
		return nil, err
	}
	m, err := h.moduleOf(ctx, binary)
	if err != nil {
		return nil, locate(err, path)
	}
	return m, nil
}

// read reads the module in a file, with the manifest beside it if it has none.
func (h *Host) read(path string) ([]byte, error) {
	binary, err := readModule(path, h.config.ModuleSize)
	if err != nil {
		return nil, err
	}
	return withManifest(path, binary, h.config.Preflight)
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
	binary := bytes.NewBuffer(make([]byte, 0, min(info.Size(), limit)+bytes.MinRead))
	if _, err := binary.ReadFrom(io.LimitReader(file, limit+1)); err != nil {
		return nil, err
	}
	if int64(binary.Len()) > limit {
		return nil, &ModuleError{
			Path: path, Reason: fmt.Sprintf("larger than %d bytes", limit),
			Hint: "strip it (go build -ldflags='-s -w'), or raise the limit",
		}
	}
	return binary.Bytes(), nil
}
