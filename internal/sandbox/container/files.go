package container

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/bundle"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// Limits on collected files, which untrusted commands create.
const (
	maxCollected = 20_000
	maxDepth     = 64
)

// writeArchive writes a tar archive of the container's layout directories,
// writable trees and secrets.
func writeArchive(w io.Writer, spec *sandbox.Spec) error {
	tw := tar.NewWriter(w)
	made := map[string]bool{"work": true}
	dir := func(p string) error {
		var up []string
		for ; p != "." && !made[p]; p = path.Dir(p) {
			made[p] = true
			up = append(up, p)
		}
		for _, d := range slices.Backward(up) {
			if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, d := range []string{mountpoint.In, mountpoint.Out} {
		if err := dir(d[1:]); err != nil {
			return err
		}
	}
	for i := range spec.Trees {
		t := &spec.Trees[i]
		for _, f := range t.Files {
			if !prepare.IsWritable(t.Path) {
				break
			}
			name := t.Path[1:] + "/" + f.Path
			h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: f.Size, Mode: 0o644, ModTime: time.Unix(0, 0)}
			if f.Exec {
				h.Mode = 0o755
			}
			if err := errors.Join(dir(path.Dir(name)), tw.WriteHeader(h)); err != nil {
				return err
			}
			if err := bundle.Copy(tw, t, f); err != nil {
				if errors.Is(err, tar.ErrWriteTooLong) {
					err = &sandbox.ChangedError{Tree: t.Path, Path: f.Path}
				}
				return err
			}
		}
	}
	for _, s := range spec.Secrets {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: mountpoint.Secrets[1:] + "/" + s.Name, Size: int64(len(s.Reveal())), Mode: 0o400, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		if _, err := io.WriteString(tw, s.Reveal()); err != nil {
			return err
		}
	}
	return tw.Close()
}

// Collect calls visit for each file in the work directory, in order. It first
// stores the archive from the container in a temporary file, because tar uses a
// different order.
func (s *instance) Collect(ctx context.Context, visit func(sandbox.File, io.Reader) error) error {
	spool, err := os.CreateTemp("", "loadout-files-")
	if err != nil {
		return fmt.Errorf("collect files: %w", err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	if err := s.spool(ctx, spool); err != nil {
		return err
	}
	found, err := listEntries(spool)
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(f.File, io.NewSectionReader(spool, f.at, f.Size)); err != nil {
			return err
		}
	}
	return nil
}

// spool writes a tar archive of the work directory to w.
func (s *instance) spool(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := s.engine.command(ctx, "exec", "--user", user, s.name, "tar", "-c", "-f", "-", "-C", mountpoint.Work, "--exclude", "./in", ".")
	l := prepare.Limits(s.spec)
	room := &limitedWriter{w, workSize(s.spec, l) + 2048*int64(l.Inodes) + 1<<20}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = room, &limitedWriter{&stderr, 4 << 10}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case room.left < 0:
		return errors.New("collect files: archive exceeds the size of the work directory")
	case err != nil && exitCode(err) != 1: // with code 1, a file changed meanwhile or was unreadable
		return &callError{[]string{"collect files"}, lastLine(stderr.String()), err}
	}
	return nil
}

// limitedWriter discards all data beyond a limit.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	keep := b[:max(0, min(int64(len(b)), l.left))]
	l.left -= int64(len(b))
	_, err := l.w.Write(keep)
	return len(b), err
}

// entry is a regular file in a tar archive.
type entry struct {
	sandbox.File
	at int64
}

// listEntries returns the regular files in an archive of the work directory,
// sorted. It skips other file types and invalid paths.
func listEntries(r io.ReadSeeker) ([]entry, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var found []entry
	for tr := tar.NewReader(r); len(found) < maxCollected; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, fmt.Errorf("read tar of collected files: %w", err)
		}
		name := strings.TrimPrefix(h.Name, "./")
		if h.Typeflag != tar.TypeReg || isSparse(h) || !fs.ValidPath(name) || name == "." || name == "in" || strings.HasPrefix(name, "in/") || strings.Count(name, "/") > maxDepth {
			continue
		}
		at, err := r.Seek(0, io.SeekCurrent) // the reader reads no further than the header
		if err != nil {
			return nil, err
		}
		found = append(found, entry{sandbox.File{Path: name, Size: h.Size, Exec: h.Mode&0o111 != 0}, at})
	}
	slices.SortFunc(found, func(a, b entry) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return slices.CompactFunc(found, func(a, b entry) bool { return a.Path == b.Path }), nil
}

// isSparse reports whether a file is stored in a sparse format, which tar
// produces only on request.
func isSparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func report(b *Backend, e *engine, res *execute.Result) *sandbox.Report {
	r := &sandbox.Report{Backend: b.Name(), Tier: res.Tier, Version: e.kind + " " + e.version}
	for _, name := range slices.Sorted(maps.Keys(res.Enforced)) {
		l := sandbox.Layer{Name: name, Enforced: res.Enforced[name] != "", By: res.Enforced[name]}
		switch {
		case l.Enforced:
		case name == "inodes" && e.kind != "docker":
			l.By = e.kind + " cannot limit the number of files"
		case name == "memory", name == "processes", name == "cores":
			l.By, l.Fix = "the container has no such control group limit", "give "+e.kind+" access to the memory, pids and cpu control groups: see the warnings of "+e.kind+" info"
		default:
			l.By = e.kind + " received the limit but did not apply it to the container"
		}
		r.Layers = append(r.Layers, l)
	}
	return r
}
