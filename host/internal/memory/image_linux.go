package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// freeze writes all pages that are not zero into a file in memory, which nobody
// can write to afterwards, or just those that are others than below. Where there are no
// such files, the image is a copy.
func (r *region) freeze(ctx context.Context, size int, below *Image) (*Image, error) {
	if image, err := r.freezeOver(ctx, size, below); image != nil || err != nil {
		return image, err
	}
	extents, err := extentsOf(ctx, r.all, extent{end: size})
	if err != nil {
		return nil, err
	}
	own, err := writeFile(ctx, size, extents)
	if errors.Is(err, errNoFile) {
		return copied(r.all[:size]), nil
	} else if err != nil {
		return nil, err
	}
	return r.image(size, extents, []layer{{extent{end: size}, own}}), nil
}

// image makes an image of layers.
func (r *region) image(size int, extents []extent, layers []layer) *Image {
	i := &Image{size: size, extents: extents, layers: layers, pagemap: r.openPagemap()}
	for _, f := range i.files() {
		f.images.Add(1)
	}
	i.close = func() error {
		var errs []error
		if i.pagemap >= 0 {
			errs = append(errs, unix.Close(i.pagemap))
		}
		for _, f := range i.files() {
			errs = append(errs, f.release())
		}
		return errors.Join(errs...)
	}
	return i
}

// files are those that the image needs.
func (i *Image) files() []*file {
	files := []*file{i.layers[0].file}
	if top := i.layers[len(i.layers)-1].file; top != files[0] {
		files = append(files, top)
	}
	if all := i.flat.file.Load(); all != nil {
		files = append(files, all)
	}
	return files
}

// chunk is the number of bytes between two checks of a context.
const chunk = 4 << 20

// zeros is a page that nobody writes to.
var zeros = make([]byte, os.Getpagesize())

// extentsOf finds the pages of a range that are not zero. The range begins with a page.
func extentsOf(ctx context.Context, memory []byte, within extent) ([]extent, error) {
	page := os.Getpagesize()
	var extents []extent
	for at := within.start; at < within.end; at += page {
		if (at-within.start)%chunk == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		end := min(at+page, within.end)
		switch last := len(extents) - 1; {
		case bytes.Equal(memory[at:end], zeros[:end-at]):
		case last >= 0 && extents[last].end == at:
			extents[last].end = end
		default:
			extents = append(extents, extent{at, end, memory})
		}
	}
	return extents, nil
}

// differs reports whether a memory has other bytes than the image, in one page.
func (i *Image) differs(memory []byte, page extent) bool {
	before := zeros
	if page.start < i.size {
		if content, _ := i.from(page.start); content != nil {
			before = content
		}
	}
	return !bytes.Equal(memory[page.start:page.end], before[:page.end-page.start])
}

var errNoFile = errors.New("the kernel has no files in memory")

// writeFile makes a sealed file in memory of that size, with these extents. They are
// extents of the file afterwards. It fails with errNoFile, or with the cause with which
// ctx ended.
func writeFile(ctx context.Context, size int, extents []extent) (*file, error) {
	descriptor, err := unix.MemfdCreate("flowhost-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, errNoFile
	}
	f := &file{descriptor: descriptor}
	err = f.fill(ctx, size, extents)
	if err == nil && size > 0 {
		f.bytes, err = unix.Mmap(descriptor, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing an image: %w", err), unix.Close(descriptor))
	}
	for n := range extents {
		extents[n].of = f.bytes
	}
	return f, nil
}

func (f *file) fill(ctx context.Context, size int, extents []extent) error {
	if err := unix.Ftruncate(f.descriptor, int64(roundUp(size))); err != nil {
		return err
	}
	for _, e := range extents {
		for at := e.start; at < e.end; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n, err := unix.Pwrite(f.descriptor, e.of[at:min(at+chunk, e.end)], int64(at))
			if err != nil {
				return err
			}
			at += n
		}
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	_, err := unix.FcntlInt(uintptr(f.descriptor), unix.F_ADD_SEALS, seals)
	return err
}

// release is for an image that does not need the file any more.
func (f *file) release() error {
	if f.images.Add(-1) > 0 {
		return nil
	}
	var err error
	if f.bytes != nil {
		err = unix.Munmap(f.bytes)
	}
	return errors.Join(err, unix.Close(f.descriptor))
}
