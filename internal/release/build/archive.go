package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// writeArchive writes the files in dir to an archive, below a directory with
// the name of dir. The owners, modes, times and order of the files do not
// depend on the machine.
func writeArchive(file, dir string, date time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	switch {
	case strings.HasSuffix(file, ".tar.gz"):
		return writeTar(out, dir, date)
	case strings.HasSuffix(file, ".zip"):
		return writeZip(out, dir, date)
	}
	return fmt.Errorf("%s is neither a .tar.gz nor a .zip file", file)
}

func writeTar(out io.Writer, dir string, date time.Time) error {
	zw, err := gzip.NewWriterLevel(out, gzip.BestCompression) // without a name and a time
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	err = eachFile(dir, func(name string, mode fs.FileMode, content []byte) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: int64(mode), ModTime: date, Format: tar.FormatUSTAR}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := tw.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

func writeZip(out io.Writer, dir string, date time.Time) error {
	zw := zip.NewWriter(out)
	err := eachFile(dir, func(name string, mode fs.FileMode, content []byte) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: date}
		h.SetMode(mode)
		w, err := zw.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return zw.Close()
}

// eachFile calls add for the files below dir in lexical order. Names start with
// the name of dir. Programs have the mode 0755, and other files 0644.
func eachFile(dir string, add func(name string, mode fs.FileMode, content []byte) error) error {
	top := filepath.Base(dir)
	root := os.DirFS(dir)
	return fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("not a regular file: %s", filepath.Join(dir, p))
		}
		content, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		return add(path.Join(top, p), mode, content)
	})
}
