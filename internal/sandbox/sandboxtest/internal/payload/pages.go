//go:build linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

const pageSize = 4096

// takeSplicedPages moves one byte of each page of a file through a pipe into
// sockets. The sockets keep the whole pages in memory.
func takeSplicedPages() error {
	const atOnce = 16 // the pages that a pipe can hold
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	return takeFilePages(atOnce, func(socket int, file int, at int64) (int, error) {
		for i := range int64(atOnce) {
			off := at + i*pageSize
			if _, err := unix.Splice(file, &off, pipe[1], nil, 1, 0); err != nil {
				return 0, err
			}
		}
		n, err := unix.Splice(pipe[0], nil, socket, nil, atOnce, unix.SPLICE_F_NONBLOCK)
		if err != nil { // the pipe is full
			discard := make([]byte, atOnce)
			unix.Read(pipe[0], discard)
		}
		return int(n), err
	})
}

// takeSentPages sends the last byte of a page and the first of the next to
// sockets, which keep both pages.
func takeSentPages() error {
	return takeFilePages(2, func(socket int, file int, at int64) (int, error) {
		at += pageSize - 1
		return unix.Sendfile(socket, file, &at, 2)
	})
}

// sender is the socket that receives data until its buffer is full, or -1.
var sender = -1

// takeFilePages calls send for each group of pages in a file of one MiB, with a
// socket and the offset of the group. Then it truncates the file.
func takeFilePages(group int, send func(socket, file int, at int64) (int, error)) error {
	f, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	defer f.Close()
	defer os.Remove(f.Name())
	defer f.Truncate(0)
	if _, err := f.Write(make([]byte, mib)); err != nil {
		return err
	}
	for at := 0; at < mib; {
		if sender < 0 {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			sender = fds[0]
		}
		switch _, err := send(sender, int(f.Fd()), int64(at)); err {
		case nil:
			at += group * pageSize
		case unix.EAGAIN:
			sender = -1
		default:
			return err
		}
	}
	return nil
}
