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
// can write to afterwards. Where there are no such files, the image is a copy.
func (r *region) freeze(ctx context.Context, size int) (image *Image, err error) {
	file, err := unix.MemfdCreate("flowhost-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return copied(r.all[:size]), nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(file))
		}
	}()
	image = &Image{size: size, file: file}
	if image.extents, err = extentsOf(ctx, r.all[:size]); err != nil {
		return nil, err
	}
	if err := image.fill(ctx, r.all); err != nil {
		return nil, fmt.Errorf("writing an image: %w", err)
	}
	if size > 0 {
		image.bytes, err = unix.Mmap(file, 0, size, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("reading an image: %w", err)
		}
	}
	image.pagemap = r.openPagemap()
	image.close = image.unmap
	return image, nil
}

// chunk is the number of bytes between two checks of a context.
const chunk = 4 << 20

// extentsOf finds the pages that are not zero.
func extentsOf(ctx context.Context, content []byte) ([]extent, error) {
	page := os.Getpagesize()
	zeros := make([]byte, page)
	var extents []extent
	for at := 0; at < len(content); at += page {
		if at%chunk == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		end := min(at+page, len(content))
		switch last := len(extents) - 1; {
		case bytes.Equal(content[at:end], zeros[:end-at]):
		case last >= 0 && extents[last].end == at:
			extents[last].end = end
		default:
			extents = append(extents, extent{at, end})
		}
	}
	return extents, nil
}

func (i *Image) fill(ctx context.Context, content []byte) error {
	if err := unix.Ftruncate(i.file, int64(roundUp(i.size))); err != nil {
		return err
	}
	for _, e := range i.extents {
		for at := e.start; at < e.end; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n, err := unix.Pwrite(i.file, content[at:min(at+chunk, e.end)], int64(at))
			if err != nil {
				return err
			}
			at += n
		}
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	_, err := unix.FcntlInt(uintptr(i.file), unix.F_ADD_SEALS, seals)
	return err
}

func (i *Image) unmap() error {
	var errs []error
	if i.bytes != nil {
		errs = append(errs, unix.Munmap(i.bytes))
	}
	if i.pagemap >= 0 {
		errs = append(errs, unix.Close(i.pagemap))
	}
	return errors.Join(append(errs, unix.Close(i.file))...)
}
