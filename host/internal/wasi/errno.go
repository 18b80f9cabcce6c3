package wasi

import "github.com/tetratelabs/wazero/experimental/sys"

// errno is an error number of preview 1. Zero is success.
type errno uint32

const (
	eacces       errno = 2
	eagain       errno = 6
	ebadf        errno = 8
	ebusy        errno = 10
	eexist       errno = 20
	efault       errno = 21
	eintr        errno = 27
	einval       errno = 28
	eio          errno = 29
	eisdir       errno = 31
	eloop        errno = 32
	emfile       errno = 33
	enametoolong errno = 37
	enoent       errno = 44
	enosys       errno = 52
	enotdir      errno = 54
	enotempty    errno = 55
	enotsock     errno = 57
	enotsup      errno = 58
	eperm        errno = 63
	erange       errno = 68
	erofs        errno = 69
)

// errnoOf translates the error of a file system.
func errnoOf(e sys.Errno) errno {
	numbers := [...]errno{
		0:                0,
		sys.EACCES:       eacces,
		sys.EAGAIN:       eagain,
		sys.EBADF:        ebadf,
		sys.EEXIST:       eexist,
		sys.EFAULT:       efault,
		sys.EINTR:        eintr,
		sys.EINVAL:       einval,
		sys.EIO:          eio,
		sys.EISDIR:       eisdir,
		sys.ELOOP:        eloop,
		sys.ENAMETOOLONG: enametoolong,
		sys.ENOENT:       enoent,
		sys.ENOSYS:       enosys,
		sys.ENOTDIR:      enotdir,
		sys.ERANGE:       erange,
		sys.ENOTEMPTY:    enotempty,
		sys.ENOTSOCK:     enotsock,
		sys.ENOTSUP:      enotsup,
		sys.EPERM:        eperm,
		sys.EROFS:        erofs,
	}
	if int(e) < len(numbers) {
		return numbers[e]
	}
	return eio
}
