//go:build linux

package main

import (
	"bytes"
	"syscall"
)

// The baselines are measured with plain system calls, one buffer and no checks.

const headSize = 4 << 10

// forEachHead calls fn with the first 4 KiB of every SKILL.md.
func (b *bench) forEachHead(fn func(head []byte)) error {
	root, err := syscall.Open(b.dir, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(root)
	buf := make([]byte, headSize)
	for _, name := range b.names {
		fd, err := syscall.Openat(root, name+"/SKILL.md", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		n, err := syscall.Read(fd, buf)
		syscall.Close(fd)
		if err != nil {
			return err
		}
		fn(buf[:n])
	}
	return nil
}

func (b *bench) readHeads() error { return b.forEachHead(func([]byte) {}) }

// metadata holds the minimum data that a catalog stores for a skill.
type metadata struct{ name, description string }

// parseAll returns the name and the description of each skill. It finds them by
// searching for lines that begin with the field names.
func (b *bench) parseAll() ([]metadata, error) {
	all := make([]metadata, 0, len(b.names))
	err := b.forEachHead(func(head []byte) {
		all = append(all, metadata{lineValue(head, "\nname: "), lineValue(head, "\ndescription: ")})
	})
	return all, err
}

func lineValue(head []byte, key string) string {
	_, rest, _ := bytes.Cut(head, []byte(key))
	v, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(v)
}

func (b *bench) statAll() error {
	var st syscall.Stat_t
	for _, name := range b.names {
		if err := syscall.Stat(b.dir+"/"+name+"/SKILL.md", &st); err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads a file that is no larger than buf into buf.
func readWhole(file string, buf []byte) error {
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Read(fd, buf)
	return err
}
