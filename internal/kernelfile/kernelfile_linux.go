package kernelfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// maxSize is the maximum size of a file to read, in bytes.
const maxSize = 4 << 20

// ReadFile returns the content of a file of at most 4 MiB. It does not wait, so the
// file must not be a pipe or a device.
func ReadFile(path string) ([]byte, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 1024)
	for len(b) <= maxSize {
		b = slices.Grow(b, 512)
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
	return nil, fmt.Errorf("%s too large (limit %d bytes)", path, maxSize)
}

// WriteFile writes a value to a file, which must exist, in a single write.
func WriteFile(path, value string) error {
	fd, err := open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Write(fd, []byte(value))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && n < len(value):
			err = fmt.Errorf("wrote %d of %d bytes", n, len(value))
		}
		if err != nil {
			return &fs.PathError{Op: "write", Path: path, Err: err}
		}
		return nil
	}
}

func open(path string, flag int) (int, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}
