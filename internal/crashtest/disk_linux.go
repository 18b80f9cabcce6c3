package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Disk is an ext4 file system in an image file, mounted over a loop device. It
// needs root.
type Disk struct {
	Dir   string // where it is mounted
	image string
}

// NewDisk makes a disk of the given size in bytes, below dir.
func NewDisk(ctx context.Context, dir string, size int64) (*Disk, error) {
	d := &Disk{Dir: filepath.Join(dir, "disk"), image: filepath.Join(dir, "disk.img")}
	file, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(file.Truncate(size), file.Close(), os.Mkdir(d.Dir, 0o700))
	}
	if err == nil {
		// Nothing is left to be done in the background, and no blocks are for root.
		err = command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image)
	}
	if err == nil {
		err = d.Mount(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("a disk in a file, which needs root and loop devices: %w", err)
	}
	return d, nil
}

// Mount mounts the disk, which repairs it from its journal as after a power loss.
func (d *Disk) Mount(ctx context.Context) error {
	return command(ctx, "mount", "-t", "ext4", "-o", "loop", d.image, d.Dir)
}

// Unmount unmounts the disk. Whoever has used it has ended.
func (d *Disk) Unmount(ctx context.Context) error {
	_, err := try(ctx, func() (struct{}, error) { return struct{}{}, command(ctx, "umount", d.Dir) })
	return err
}

// goingDown is EXT4_IOC_SHUTDOWN, and noLogFlush the flag with which the file
// system's own journal is not written either.
// Source: Linux, fs/ext4/ext4.h.
const (
	goingDown  = 0x8004587d
	noLogFlush = 2
)

// Cut ends the file system as a power loss does: from now on nothing reaches the
// image, neither what programs have written nor what the kernel still had to
// write. What the kernel has handed to the device stays, synced or not: it is a
// disk without a cache.
func (d *Disk) Cut() error {
	dir, err := os.Open(d.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	flag := uint32(noLogFlush)
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), goingDown, uintptr(unsafe.Pointer(&flag))); failed != 0 {
		return fmt.Errorf("cutting the power of %s: %w", d.Dir, failed)
	}
	return nil
}

// Fill takes all the room that is left.
func (d *Disk) Fill() error {
	file, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	size, step := int64(0), int64(64<<20)
	for step >= 4<<10 {
		err = syscall.Fallocate(int(file.Fd()), 0, size, step)
		switch {
		case err == nil:
			size += step
		case errors.Is(err, syscall.ENOSPC):
			step /= 2
		case !errors.Is(err, syscall.EINTR):
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

// Empty removes what Fill has written.
func (d *Disk) Empty() error { return os.Remove(d.filler()) }

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// Freeze stops processes, with SIGSTOP, and returns when all their threads stand
// still.
func Freeze(ctx context.Context, processes ...*Process) error {
	for _, p := range processes {
		p.Signal(syscall.SIGSTOP)
	}
	for _, p := range processes {
		if _, err := try(ctx, func() (struct{}, error) { return struct{}{}, p.still() }); err != nil {
			return err
		}
	}
	return nil
}

// still reports an error while a thread of the process is not stopped (proc(5),
// state T in the file stat, after the name in parentheses).
func (p *Process) still() error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
	for _, name := range threads {
		text, failed := os.ReadFile(name)
		_, state, found := strings.Cut(string(text), ") ")
		if failed != nil || !found || state[0] != 'T' && state[0] != 'Z' {
			err = fmt.Errorf("%s is not stopped", name)
		}
	}
	return err
}

func command(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if text, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return nil
}
