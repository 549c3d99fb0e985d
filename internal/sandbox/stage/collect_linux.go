package stage

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Limits on collected files, which untrusted commands create.
const (
	maxCollected = 100_000
	maxDepth     = 64
	maxPath      = 4096
)

// collect writes the files below the work directory to the descriptor fd and
// then sends a Collected message. It opens only regular files and follows no
// symlinks.
func (s *stage) collect(c Collect, fd int) {
	out := os.NewFile(uintptr(fd), "collect")
	w := bufio.NewWriterSize(out, 64<<10)
	err := writeTree(w, s.seal.Work, s.seal.Skip)
	if err == nil {
		err = w.Flush()
	}
	out.Close()
	done := Collected{ID: c.ID}
	if err != nil {
		done.Error = err.Error()
	}
	s.reply(KindCollected, done)
}

var errTooMany = errors.New("too many files to collect")

func writeTree(w io.Writer, dir, skip string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	n, own := 0, deviceNumber(root.Stat("."))
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && p == ".":
			return err
		case err != nil, d.IsDir() && (p == skip || strings.Count(p, "/") >= maxDepth):
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && deviceNumber(d.Info()) != own: // a mount, which no command can create
			return fs.SkipDir
		case !d.Type().IsRegular() || deviceNumber(d.Info()) != own || len(p) > maxPath || !utf8.ValidString(p):
			return nil
		}
		if n++; n > maxCollected {
			return errTooMany
		}
		return writeEntry(w, root, p)
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(Entry{End: true})
}

func deviceNumber(fi fs.FileInfo, err error) uint64 {
	if err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			return uint64(st.Dev)
		}
	}
	return 0
}

func writeEntry(w io.Writer, root *os.Root, p string) error {
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // the file was removed or replaced meanwhile
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	if err := json.NewEncoder(w).Encode(Entry{Path: []byte(p), Size: fi.Size(), Exec: fi.Mode()&0o111 != 0}); err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(f, fi.Size()))
	if err != nil && n == 0 {
		err = nil // an unreadable file is zero-padded
	}
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, zeroReader{}, fi.Size()-n) // a file that shrank is zero-padded
	return err
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
